"""Tests on the simulated NPU; those of the binding build no engine."""

from __future__ import annotations

import os

# Before torch and vLLM are imported; both read them once.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
