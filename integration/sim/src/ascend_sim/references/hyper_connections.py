# SPDX-License-Identifier: Apache-2.0
"""Manifold-constrained hyper-connections: n parallel residual streams, mixed before and after each layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test
from ascend_sim.references.undefined import undefined


def _as_hf32(values: Tensor) -> Tensor:
    """Round float32 to the 11 bits of mantissa that the matrix unit's fast mode takes, as the vendor's golden does."""
    bits = values.contiguous().view(torch.int32)
    return ((((bits >> 12) + 1) >> 1) << 13).view(torch.float32)


@reference("npu::npu_mhc_pre", source=op_plugin_test("test_npu_mhc_pre"), grade=Grade.GOLDEN)
def npu_mhc_pre(
    x: Tensor,
    phi: Tensor,
    alpha: Tensor,
    bias: Tensor,
    *,
    gamma: Tensor | None = None,
    norm_eps: float = 1e-6,
    hc_eps: float = 1e-6,
    out_flag: int = 0,
    inner_precise: int = 0,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Mix the streams x [.., n, D] into a layer's input and compute how its output is to be added.

    Returns:
        The input [.., D], the gates of its output [.., n], the mixture of the streams [.., n, n] (of one element if
        ``alpha`` has 2), and with ``out_flag`` 1 / rms [..], the product with phi and the gates of the input; these are
        undefined without.
    """
    n, lead = x.shape[-2], x.shape[:-2]
    mixed = alpha.numel() == 3
    if phi.shape[0] != (n * n if mixed else 0) + 2 * n:
        raise limits.refuse("npu_mhc_pre", "phi.shape[0]", phi.shape[0], (n * n if mixed else 0) + 2 * n)
    streams = x.float()
    flat = streams.flatten(-2)
    inv_rms = torch.rsqrt(flat.square().mean(-1, keepdim=True) + norm_eps)
    left = flat if gamma is None else flat * gamma.float().flatten()
    right = phi.float()
    if inner_precise:
        left, right = _as_hf32(left), _as_hf32(right)
    product = F.linear(left, right)
    weight = product * inv_rms
    pre = torch.sigmoid(weight[..., :n] * alpha[0] + bias[:n]) + hc_eps
    post = 2 * torch.sigmoid(weight[..., n : 2 * n] * alpha[1] + bias[n : 2 * n])
    residual = undefined([1], torch.float32)
    if mixed:
        residual = (weight[..., 2 * n :] * alpha[2] + bias[2 * n :]).unflatten(-1, (n, n))
    layer = torch.einsum("...n,...nd->...d", pre, streams).to(x.dtype)
    if not out_flag:
        inv_rms, product, pre = (undefined(t.shape, torch.float32) for t in (inv_rms, product, pre))
    return layer, post, residual, inv_rms.view(lead), product, pre


@reference("npu::npu_mhc_post", source=op_plugin_test("test_npu_mhc_post"), grade=Grade.GOLDEN)
def npu_mhc_post(x: Tensor, h_res: Tensor | None, h_out: Tensor, h_post: Tensor) -> Tensor:
    """``h_res^T x + h_post (outer) h_out``: streams x [.., n, D] mixed, and the output [.., D] gated for each."""
    streams = x.float()
    if h_res is not None:
        streams = torch.matmul(h_res.transpose(-1, -2), streams)
    return (streams + h_post.unsqueeze(-1) * h_out.float().unsqueeze(-2)).to(x.dtype)


@reference(
    "npu::npu_mhc_sinkhorn",
    source=op_plugin_test("test_npu_mhc_sinkhorn"),
    grade=Grade.GOLDEN,
    note="out_flag 1, whose results only the backward pass reads, is not simulated",
)
def npu_mhc_sinkhorn(
    x: Tensor, *, eps: float = 1e-6, num_iters: int = 20, out_flag: int = 0
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Make matrices [.., n, n] doubly stochastic: softmax of the rows, then columns and rows divided by their sums."""
    op = "npu_mhc_sinkhorn"
    if out_flag:
        raise limits.not_simulated(op, "out_flag", out_flag)
    if not 0 < num_iters <= 100:
        raise limits.refuse(op, "num_iters", num_iters, "1 to 100")
    y = x.softmax(-1) + eps
    y = y / (y.sum(-2, keepdim=True) + eps)
    for _ in range(num_iters - 1):
        y = y / (y.sum(-1, keepdim=True) + eps)
        y = y / (y.sum(-2, keepdim=True) + eps)
    return y, None, None
