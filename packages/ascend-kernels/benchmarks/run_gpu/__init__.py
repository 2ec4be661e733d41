"""Speed and numerics of the operators on a CUDA device, each beside a public peer in the same process."""
