"""Noise that depends on a seed, a position and a token alone: what sampling draws, in torch and in kernels."""
