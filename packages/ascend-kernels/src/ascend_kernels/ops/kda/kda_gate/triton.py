"""Triton kernel: the decay of every token and key channel, a head at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.gdn_gating.triton import softplus
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.kda.kda_gate.plan import plan_kda_gate
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["tokens", "tasks", "programs"])
def kda_gate_kernel(
    g,
    a_log,
    bias,
    decay,
    tokens,
    g_stride,
    softplus_beta,
    threshold,
    tasks,
    programs,
    HEADS: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    HAS_BIAS: tl.constexpr,
):
    channel = tl.arange(0, BLOCK)
    in_head = channel < CHANNELS
    for task in range(tl.program_id(0), tasks, programs):
        tile = task // HEADS
        head = task - tile * HEADS
        row = tile * ROWS + tl.arange(0, ROWS)[:, None]
        inside = (row < tokens) & in_head[None, :]
        column = head * CHANNELS + channel[None, :]
        step = tl.load(g + row.to(tl.int64) * g_stride + column, mask=inside, other=0.0).to(tl.float32)
        if HAS_BIAS:
            step += tl.load(bias + head * CHANNELS + channel, mask=in_head, other=0.0).to(tl.float32)[None, :]
        rate = tl.exp(tl.load(a_log + head).to(tl.float32))
        tl.store(
            decay + row.to(tl.int64) * (HEADS * CHANNELS) + column,
            -rate * softplus(step, softplus_beta, threshold),
            mask=inside,
        )


def kda_gate_triton(
    g: torch.Tensor, a_log: torch.Tensor, bias: torch.Tensor | None, softplus_beta: float, threshold: float
) -> torch.Tensor:
    """See :func:`ascend_kernels.kda_gate`."""
    g = heads_together(g)
    tokens, heads, channels = g.shape
    decay = g.new_empty(g.shape, dtype=torch.float32)
    plan = plan_kda_gate(tokens, heads, channels, current_target(g.device))
    launch(
        kda_gate_kernel,
        (plan.programs,),
        g,
        a_log.contiguous(),
        a_log if bias is None else bias.contiguous(),
        decay,
        tokens,
        g.stride(0),
        softplus_beta,
        threshold,
        plan.tasks,
        plan.programs,
        HEADS=heads,
        CHANNELS=channels,
        ROWS=plan.rows,
        BLOCK=plan.block,
        HAS_BIAS=bias is not None,
    )
    return decay
