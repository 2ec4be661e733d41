"""Triton kernels of the operators, interpreted, under whole engines."""
