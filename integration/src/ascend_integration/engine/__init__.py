"""vLLM engines as the end-to-end tests and benchmarks start and end them."""
