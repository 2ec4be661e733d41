"""The context in which vLLM's runner captures graphs."""

from __future__ import annotations

from vllm_ascend.graph.capture import graph_capture
from vllm_ascend.patch import patch

patch(
    target="vllm.v1.worker.gpu_model_runner:graph_capture",
    stage="worker",
    reason="vLLM's context asserts that a group's communicator is its CUDA or XPU one, to prepare custom all-reduce",
    versions=">=0.23,<0.24",
    digest="acb7b671c553ffb7",
)(graph_capture)
