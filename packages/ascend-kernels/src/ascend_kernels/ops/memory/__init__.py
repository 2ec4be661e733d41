"""Operators that move memory and say what of a batch is whose."""
