"""Kernels that must not pass: each asks for something that the hardware does not have, so that a check which passes
everything is noticed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from ascend_kernels.calls import meta
from ascend_kernels.launch import Launch
from ascend_kernels.lowering.compiler import LoweringError, to_hivm, to_linalg
from ascend_kernels.lowering.signature import signature_of


@triton.jit
def _add(left, right, result, size: tl.constexpr):
    lane = tl.arange(0, size)
    tl.store(result + lane, tl.load(left + lane) + tl.load(right + lane))


@triton.jit
def _multiply(left, right, result, rows: tl.constexpr, inner: tl.constexpr):
    row, column = tl.arange(0, rows)[:, None], tl.arange(0, rows)[None, :]
    depth = tl.arange(0, inner)
    product = tl.dot(tl.load(left + row * inner + depth[None, :]), tl.load(right + depth[:, None] * rows + column))
    tl.store(result + row * rows + column, product)


@triton.jit
def _normalise(values, result, rows, size: tl.constexpr, tile: tl.constexpr):
    lane = tl.arange(0, size)[None, :]
    for start in range(tl.program_id(0) * tile, rows, tl.num_programs(0) * tile):
        row = start + tl.arange(0, tile)[:, None]
        loaded = tl.load(values + row * size + lane, mask=row < rows, other=0.0).to(tl.float32)
        mean = tl.sum(loaded * loaded, axis=1)[:, None] / size
        tl.store(result + row * size + lane, (loaded / tl.sqrt(mean)).to(tl.bfloat16), mask=row < rows)


@triton.jit
def _unknown(values, result, size: tl.constexpr):
    lane = tl.arange(0, size)
    tl.store(result + lane, tl.no_such_function(tl.load(values + lane)))


@dataclass(frozen=True, slots=True)
class Control:
    """A launch that must be refused, and a word that the reason must contain."""

    name: str
    launch: Launch
    reason: str


def controls() -> list[Control]:
    """One control for each thing that the check claims to notice."""

    def three(dtype: torch.dtype, size: int) -> tuple[torch.Tensor, ...]:
        return tuple(meta(size, dtype=dtype) for _ in range(3))

    return [
        Control("a kernel that is fine", Launch(_add, (1,), three(torch.float32, 1024), {"size": 1024}), ""),
        Control(
            "tiles larger than the unified buffer",
            Launch(_add, (1,), three(torch.float32, 65536), {"size": 65536}),
            "ub overflow",
        ),
        Control(
            "an accumulator larger than L0C",
            Launch(_multiply, (1,), three(torch.float16, 512 * 512), {"rows": 512, "inner": 64}),
            "cc overflow",
        ),
        Control(
            "tiles that fit without double buffering only",
            Launch(_normalise, (48,), (*three(torch.bfloat16, 4096)[:2], 4096), {"size": 4096, "tile": 4}),
            "retries",
        ),
        Control(
            "double precision",
            Launch(_add, (1,), three(torch.float64, 1024), {"size": 1024}),
            "should have element type",
        ),
        Control(
            "a function that Triton does not have",
            Launch(_unknown, (1,), three(torch.float32, 1024)[:2], {"size": 1024}),
            "no_such_function",
        ),
    ]


def refusal(control: Control, target: str) -> str:
    """Why a launch does not lower as it should; empty if it does."""
    try:
        lowered = to_hivm(to_linalg(control.launch.kernel, signature_of(control.launch)), target)
    except LoweringError as error:
        return str(error)
    return f"fits only after retries ({lowered.retries})" if lowered.retries else ""
