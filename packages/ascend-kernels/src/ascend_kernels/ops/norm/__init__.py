"""Normalisation over rows."""
