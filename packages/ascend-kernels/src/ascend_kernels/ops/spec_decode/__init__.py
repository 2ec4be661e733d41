"""Operators of speculative decoding: verification of drafts."""
