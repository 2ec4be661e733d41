"""Operators of low-rank adapters, several in a batch."""
