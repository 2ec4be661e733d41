"""vLLM's own tests, run on the simulated NPU: an oracle that is not ours."""
