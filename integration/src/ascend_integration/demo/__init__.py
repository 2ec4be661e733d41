"""The demo: a real model behind `vllm serve` on the NPU, asked one question over HTTP."""
