"""Discovery of vllm-ascend's own components and the two hooks that vLLM calls."""
