"""Launches of kernels: limits, the call that every launcher goes through, and a record of launches that are not run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

MAX_PROGRAMS = 65535
"""Largest product of grid dimensions on Ascend; more work is covered by a grid-stride loop."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A one-dimensional launch.

    Attributes:
        programs: size of the grid; 0 means that nothing is launched.
        block: elements that a program handles at a time, a power of two.
    """

    programs: int
    block: int


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch that was recorded instead of run.

    Attributes:
        kernel: the Triton kernel.
        grid: number of programs per dimension.
        arguments: the kernel's positional arguments; tensors as they were given, without their data if on ``meta``.
        options: compile-time arguments and Triton's launch options, by name.
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


ASCEND_OPTIONS = frozenset({"multibuffer"})
"""Launch options that triton-ascend's compiler alone takes. ``multibuffer=False`` gives up the overlap of transfers and
arithmetic and so halves what a tile takes of the unified buffer."""

_record: list[Launch] | None = None


def launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    """Launch a Triton kernel; a grid with no programs launches nothing.

    Args:
        kernel: the kernel.
        grid: number of programs per dimension.
        arguments: run-time arguments in the kernel's order.
        options: compile-time arguments, and Triton's launch options (``num_warps``, ``num_stages``); those in
            :data:`ASCEND_OPTIONS` reach no other compiler.

    Raises:
        ValueError: the grid has more programs than an NPU can start.
    """
    programs = math.prod(grid)
    if programs == 0:
        return
    if programs > MAX_PROGRAMS:
        raise ValueError(
            f"{kernel.__name__}: a grid of {grid} has {programs} programs; at most {MAX_PROGRAMS} are possible: "
            "let a program take several tiles"
        )
    if _record is not None:
        _record.append(Launch(kernel, grid, arguments, options))
        return
    kernel[grid](*arguments, **_options_for(kernel, options))


def compile_launch(recorded: Launch) -> None:
    """Compile what a recorded launch needs, for the active device, and run nothing.

    Its tensors may be on ``meta``: their addresses count as multiples of 16, as those of fresh tensors are.
    """
    arguments = [argument.dtype if isinstance(argument, torch.Tensor) else argument for argument in recorded.arguments]
    recorded.kernel.warmup(*arguments, grid=recorded.grid, **_options_for(recorded.kernel, recorded.options))


def _options_for(kernel: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a launch that the kernel's compiler takes."""
    if ASCEND_OPTIONS.isdisjoint(options) or _compiled_for_ascend(kernel.__class__):
        return options
    return {name: value for name, value in options.items() if name not in ASCEND_OPTIONS}


@cache
def _compiled_for_ascend(kernel: type) -> bool:
    """Whether kernels of this class go through triton-ascend's compiler, not stock Triton's and not an interpreter."""
    from triton.backends import backends
    from triton.runtime.jit import JITFunction

    return issubclass(kernel, JITFunction) and "ascend" in backends


@contextmanager
def recorded_launches() -> Iterator[list[Launch]]:
    """Record launches in this block instead of running them; the operators' results stay unwritten."""
    global _record
    previous, _record = _record, []
    try:
        yield _record
    finally:
        _record = previous


def next_power_of_two(number: int) -> int:
    """The smallest power of two that is not below ``number``; 1 for numbers up to 1."""
    return 1 << max(number - 1, 0).bit_length()


def previous_power_of_two(number: int) -> int:
    """The largest power of two that is not above ``number``; 1 for numbers up to 1."""
    return 1 << (max(number, 1).bit_length() - 1)


def ceil_div(number: int, divisor: int) -> int:
    """``number / divisor``, rounded up."""
    return -(-number // divisor)
