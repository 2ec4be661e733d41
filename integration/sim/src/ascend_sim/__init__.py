"""A simulated Ascend NPU: the real torch_npu on a CPU.

Nothing needs to be imported: `import torch` loads the simulation where torch_npu is installed, CANN is not, and
`python -m ascend_sim build` has been run. What remains for programs is `ascend_sim.instruments`.
"""

__all__ = ["active", "install"]


def active() -> bool:
    """Whether torch_npu runs on the simulated NPU in this process."""
    from ascend_sim import preload

    return preload.EXPECTED


def install() -> None:
    """Put the simulation's kernels behind torch_npu; does nothing where the simulation does not apply. Idempotent.

    Raises:
        ImportError: the simulation applies here but has not been built.
    """
    from ascend_sim import preload

    if preload.EXPECTED:
        import torch_npu  # noqa: F401  (activates the simulation, or explains why not)

        from ascend_sim import runtime

        runtime.install()


_autoload = install  # entry point `torch.backends`
