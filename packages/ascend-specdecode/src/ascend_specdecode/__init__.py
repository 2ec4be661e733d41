"""Speculative decoding for vLLM on Ascend NPUs: proposers, draft models, rejection sampling.

What is there yet: see the README.
"""
