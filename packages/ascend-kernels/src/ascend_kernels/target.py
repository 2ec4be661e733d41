"""What a launch plan has to know about the device that runs it.

A plan is a plain function of shapes and a :class:`Target`; nothing in it asks a device. Which target applies to a
tensor is answered by :func:`current_target`; ``ASCEND_KERNELS_TARGET`` (``ascend910b1`` or ``ascend910_9392``, read
once) or :func:`use_target` overrides the answer, so that the plan of an NPU can run on another device.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Literal

import torch

VARIABLE = "ASCEND_KERNELS_TARGET"


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of device.

    Attributes:
        name: for messages and tables.
        kind: which launch plan applies: tiles in the unified buffer, or warps over registers.
        vector_cores: programs without matrix products that run at once (on CUDA: multiprocessors).
        cube_cores: programs with matrix products that run at once (on CUDA: multiprocessors).
        unified_buffer: bytes of on-chip memory that a vector program's tiles share; 0 where tiles live in registers.
        l0c: bytes of the accumulator of matrix products; 0 where accumulators live in registers.
    """

    name: str
    kind: Literal["ascend", "cuda"]
    vector_cores: int
    cube_cores: int
    unified_buffer: int
    l0c: int


def _ascend(arch: str, cube_cores: int, vector_cores: int) -> Target:
    return Target(arch.lower(), "ascend", vector_cores, cube_cores, unified_buffer=192 * 1024, l0c=128 * 1024)


# Core counts and buffer sizes as the compiler's target description states them for these two processors.
ASCEND_910B1 = _ascend("Ascend910B1", cube_cores=24, vector_cores=48)
ASCEND_910_9392 = _ascend("Ascend910_9392", cube_cores=24, vector_cores=48)
ASCEND_TARGETS = {target.name: target for target in (ASCEND_910B1, ASCEND_910_9392)}


def cuda_target(multiprocessors: int) -> Target:
    """The target of a CUDA device with this many multiprocessors."""
    return Target("cuda", "cuda", multiprocessors, multiprocessors, unified_buffer=0, l0c=0)


def current_target(device: torch.device) -> Target:
    """The target whose plans apply to tensors on this device.

    Raises:
        ValueError: the device is neither a CUDA device nor an NPU and no override is in force.
    """
    if _override is not None:
        return _override
    return _target_of_device(device.type, device.index)


@contextmanager
def use_target(target: Target) -> Iterator[None]:
    """Plan every launch in this block for ``target``, whatever device the tensors are on."""
    global _override
    previous, _override = _override, target
    try:
        yield
    finally:
        _override = previous


@cache
def _target_of_device(kind: str, index: int | None) -> Target:
    if kind == "cuda":
        return cuda_target(torch.cuda.get_device_properties(index).multi_processor_count)
    if kind == "npu":
        from triton.runtime import driver

        arch = str(driver.active.get_current_target().arch)
        cores = driver.active.utils.get_device_properties(index or 0)
        return _ascend(arch, cube_cores=cores["num_aicore"], vector_cores=cores["num_vectorcore"])
    raise ValueError(
        f"no launch plan for tensors on a {kind!r} device: plans exist for cuda and npu; set {VARIABLE} to one of "
        f"{', '.join(ASCEND_TARGETS)} to run an NPU's plan elsewhere"
    )


def _named_by_environment() -> Target | None:
    name = os.environ.get(VARIABLE)
    if name is None:
        return None
    if name not in ASCEND_TARGETS:
        raise ValueError(f"{VARIABLE}={name!r}: one of {', '.join(ASCEND_TARGETS)} is allowed")
    return ASCEND_TARGETS[name]


_override: Target | None = _named_by_environment()
