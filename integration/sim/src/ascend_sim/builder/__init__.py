"""Building the simulated CANN for the installed torch and torch_npu."""

from ascend_sim.builder.compile import BuildError, build

__all__ = ["BuildError", "build"]
