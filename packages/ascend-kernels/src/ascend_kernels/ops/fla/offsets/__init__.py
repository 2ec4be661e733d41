"""Offsets into large tensors, for kernels."""
