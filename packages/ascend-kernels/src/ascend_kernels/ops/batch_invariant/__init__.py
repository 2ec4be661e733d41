"""Operators whose result for a row does not depend on the other rows of the batch, bit for bit."""
