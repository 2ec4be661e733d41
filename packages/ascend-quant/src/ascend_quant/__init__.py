"""Quantisation schemes and checkpoint formats for vLLM on Ascend NPUs.

What is there yet: see the README.
"""
