"""Tensor, pipeline and data parallel engines in spawned workers on simulated NPUs."""
