"""Operators of mixture-of-experts layers."""
