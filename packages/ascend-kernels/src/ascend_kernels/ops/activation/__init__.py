"""Activations, and the quantisation that follows them."""
