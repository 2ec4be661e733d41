"""Sampling on the served model against vLLM's documented semantics, computed from transformers' logits."""
