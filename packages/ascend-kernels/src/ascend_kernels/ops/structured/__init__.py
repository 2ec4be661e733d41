"""Operators of structured output."""
