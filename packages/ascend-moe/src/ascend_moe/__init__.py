"""Fused mixture-of-experts and expert load balancing for vLLM on Ascend NPUs.

What is there yet: see the README.
"""
