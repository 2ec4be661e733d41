"""Triton kernel: decay and strength of the delta of every token and head, whole rows of heads at a time."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import launch
from ascend_kernels.ops.fla.gdn_gating.plan import plan_gdn_gating
from ascend_kernels.target import current_target


@triton.jit
def softplus(x, beta, threshold):
    """log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold."""
    scaled = x * beta
    return tl.where(scaled > threshold, x, tl.log(1.0 + tl.exp(tl.minimum(scaled, threshold))) / beta)


@triton.jit(do_not_specialize=["tokens", "tasks", "programs"])
def gdn_gating_kernel(
    a_log,
    a,
    b,
    dt_bias,
    decay,
    strength,
    tokens,
    a_stride,
    b_stride,
    softplus_beta,
    threshold,
    tasks,
    programs,
    HEADS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    head = tl.arange(0, BLOCK)
    in_heads = head < HEADS
    rate = tl.exp(tl.load(a_log + head, mask=in_heads, other=0.0).to(tl.float32))
    bias = tl.load(dt_bias + head, mask=in_heads, other=0.0).to(tl.float32)
    for task in range(tl.program_id(0), tasks, programs):
        row = task * ROWS + tl.arange(0, ROWS)[:, None]
        inside = (row < tokens) & in_heads[None, :]
        step = tl.load(a + row * a_stride + head[None, :], mask=inside, other=0.0).to(tl.float32) + bias[None, :]
        target = row * HEADS + head[None, :]
        tl.store(decay + target, -rate[None, :] * softplus(step, softplus_beta, threshold), mask=inside)
        raw = tl.load(b + row * b_stride + head[None, :], mask=inside, other=0.0).to(tl.float32)
        tl.store(strength + target, tl.sigmoid(raw).to(strength.dtype.element_ty), mask=inside)


def gdn_gating_triton(
    a_log: torch.Tensor, a: torch.Tensor, b: torch.Tensor, dt_bias: torch.Tensor, softplus_beta: float, threshold: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.gdn_gating`."""
    tokens, heads = a.shape
    a, b = (x if x.stride(1) == 1 else x.contiguous() for x in (a, b))
    decay = a.new_empty(tokens, heads, dtype=torch.float32)
    strength = b.new_empty(tokens, heads)
    plan = plan_gdn_gating(tokens, heads, current_target(a.device))
    launch(
        gdn_gating_kernel,
        (plan.programs,),
        a_log.contiguous(),
        a,
        b,
        dt_bias.contiguous(),
        decay,
        strength,
        tokens,
        a.stride(0),
        b.stride(0),
        softplus_beta,
        threshold,
        plan.tasks,
        plan.programs,
        HEADS=heads,
        ROWS=plan.rows,
        BLOCK=plan.block,
    )
    return decay, strength
