"""Operators of attention over a selection of keys."""
