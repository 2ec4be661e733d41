"""Served models against transformers: token for token in float32, within rounding in bfloat16 and float16."""
