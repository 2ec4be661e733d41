"""Operators of softmax attention."""
