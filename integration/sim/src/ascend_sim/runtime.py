"""The running simulation: kernels behind torch_npu."""

import atexit
import functools
import os
from pathlib import Path

from ascend_sim import location, preload
from ascend_sim.settings import Settings, load_settings


@functools.cache
def settings() -> Settings:
    """The settings this process runs with."""
    return load_settings()


@functools.cache
def install() -> int:
    """Install the kernels behind torch_npu's device. Returns the number of operators answered."""
    import torch

    from ascend_sim import distributed, references, torchvision

    assert preload.BUILD is not None
    for library in (location.DISPATCH, location.REFERENCES):
        torch.ops.load_library(str(preload.BUILD / library))
    count: int = torch.ops.ascend_sim.install(references.register_all(), list(settings().adopt))
    if settings().order != "off":
        torch.ops.ascend_sim.set_order(settings().order, settings().seed)
        atexit.register(torch.ops.ascend_sim.stop_progress)
    distributed.install()
    torchvision.install()
    if settings().chrome_trace:
        path = Path(settings().chrome_trace).absolute()
        torch.ops.ascend_sim.trace_start(str(path.with_name(f"{path.stem}.{os.getpid()}{path.suffix}")))
        atexit.register(torch.ops.ascend_sim.trace_stop)
    return count
