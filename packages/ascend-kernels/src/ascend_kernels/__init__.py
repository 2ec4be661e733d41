"""Standalone operators for LLM inference on Ascend NPUs."""
