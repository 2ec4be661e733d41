"""How the loops are compiled."""

from numba import njit

compiled = njit(cache=True, error_model="numpy")
"""Compile at the first call and keep the result on disk; a division by zero gives inf or nan as in numpy."""
