"""Demo, compatible sets and cross-package checks of vllm-ascend."""
