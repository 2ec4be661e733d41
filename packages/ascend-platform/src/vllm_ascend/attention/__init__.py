"""Paged attention on the vendor's fused operators."""
