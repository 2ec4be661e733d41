# SPDX-License-Identifier: Apache-2.0
"""npu_qkv_rms_norm_rope_cache: split fused QKV, normalise and rotate queries and keys, write keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.kv_cache import write_slots
from ascend_sim.references.mla.caches import saturate
from ascend_sim.references.norm import rms_norm_float
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.rotary import rotate_half
from ascend_sim.references.sources import cann_doc, op_plugin_test

_OP = "npu_qkv_rms_norm_rope_cache"
_SOURCE = f"{op_plugin_test('test_npu_qkv_rms_norm_rope_cache')}; " + cann_doc(
    "ops-transformer", "posembedding/qkv_rms_norm_rope_cache/README.md"
)


def _split(qkv: Tensor, qkv_size: list[int], head_nums: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values [B * S, N, D] in float32."""
    batch, length, heads, size = qkv_size
    if list(qkv.shape) != [batch * length, heads * size]:
        raise limits.refuse(_OP, "qkv.shape", list(qkv.shape), f"{[batch * length, heads * size]} for {qkv_size}")
    if sum(head_nums) != heads or head_nums[1] != head_nums[2]:
        raise limits.refuse(_OP, "head_nums", head_nums, f"[Nq, Nk, Nk] that sum to {heads}")
    q, k, v = qkv.float().view(-1, heads, size).split(head_nums, 1)
    return q, k, v


def _stored(values: Tensor, cache: Tensor, scale: Tensor | None, offset: Tensor | None) -> Tensor:
    """Values [T, N, D] as a cache holds them: ``values / scale + offset`` in int8, or in the cache's dtype."""
    if scale is None:
        if offset is not None:
            raise limits.refuse(_OP, "offset", "given", "None without a scale")
        return values.to(cache.dtype)
    scaled = values / scale
    return saturate(scaled if offset is None else scaled + offset)


def _run(
    qkv: Tensor,
    gammas: tuple[Tensor, Tensor],
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    outputs: tuple[Tensor, Tensor, Tensor],
    sizes: tuple[list[int], list[int]],
    scales: tuple[Tensor | None, Tensor | None],
    offsets: tuple[Tensor | None, Tensor | None],
    epsilon: float,
    cache_mode: str,
    is_output_qkv: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Write the three outputs and return their values before quantisation, or empty scalars."""
    if cache_mode != "PA_NZ":
        raise limits.refuse(_OP, "cache_mode", repr(cache_mode), "'PA_NZ'")
    q, k, v = _split(qkv, *sizes)
    turned = []
    for values, gamma in zip((q, k), gammas, strict=True):
        normed, _ = rms_norm_float(values, gamma, epsilon)
        turned.append(normed * cos.unsqueeze(1) + rotate_half(normed) * sin.unsqueeze(1))
    outputs[0].copy_(turned[0].flatten(1))
    for cache, values, scale, offset in zip(outputs[1:], (turned[1], v), scales, offsets, strict=True):
        if cache.dtype != (qkv.dtype if scale is None else torch.int8):
            wanted = f"{qkv.dtype} without a scale, int8 with one"
            raise limits.refuse(_OP, "cache.dtype", cache.dtype, wanted)
        write_slots(_OP, cache, _stored(values, cache, scale, offset), index, fractal=True)
    if not is_output_qkv:
        return qkv.new_empty(()), qkv.new_empty(()), qkv.new_empty(())
    before = [values.flatten(1).to(qkv.dtype) for values in (*turned, v)]
    return before[0], before[1], before[2]


@reference(f"npu::{_OP}", source=_SOURCE, grade=Grade.GOLDEN)
def npu_qkv_rms_norm_rope_cache(
    qkv: Tensor,
    q_gamma: Tensor,
    k_gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    q_out: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    qkv_size: list[int],
    head_nums: list[int],
    *,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    k_offset: Tensor | None = None,
    v_offset: Tensor | None = None,
    epsilon: float = 1e-6,
    cache_mode: str = "PA_NZ",
    is_output_qkv: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Write ``q_out`` [B * S, Nq * D] and the fractal caches [blocks, N * D / c, block_size, c] at ``index`` [B * S].

    Shapes: qkv [B * S, (Nq + Nk + Nv) * D], gammas [D], cos and sin [B * S, D], scales and offsets [N, D]; sizes are
    ``qkv_size`` [B, S, N, D] and ``head_nums`` [Nq, Nk, Nv]. Queries and keys are normalised, then rotated by halves.
    """
    return _run(
        qkv,
        (q_gamma, k_gamma),
        cos,
        sin,
        index,
        (q_out, k_cache, v_cache),
        (list(qkv_size), list(head_nums)),
        (k_scale, v_scale),
        (k_offset, v_offset),
        epsilon,
        cache_mode,
        is_output_qkv,
    )


@reference(f"npu::{_OP}_functional", source=_SOURCE, grade=Grade.GOLDEN)
def npu_qkv_rms_norm_rope_cache_functional(
    qkv: Tensor,
    q_gamma: Tensor,
    k_gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    q_out: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    qkv_size: list[int],
    head_nums: list[int],
    *,
    k_scale: Tensor | None = None,
    v_scale: Tensor | None = None,
    k_offset: Tensor | None = None,
    v_offset: Tensor | None = None,
    epsilon: float = 1e-6,
    cache_mode: str = "PA_NZ",
    is_output_qkv: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """:func:`npu_qkv_rms_norm_rope_cache` on copies of its three outputs, which come last."""
    outputs = (q_out.clone(), k_cache.clone(), v_cache.clone())
    before = _run(
        qkv,
        (q_gamma, k_gamma),
        cos,
        sin,
        index,
        outputs,
        (list(qkv_size), list(head_nums)),
        (k_scale, v_scale),
        (k_offset, v_offset),
        epsilon,
        cache_mode,
        is_output_qkv,
    )
    return *before, *outputs
