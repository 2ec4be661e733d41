"""Operators that prepare the inputs of a model step."""
