# SPDX-License-Identifier: Apache-2.0
"""npu_kv_rmsnorm_rope_cache: normalise the latent part, rotate the rope part and write both to their caches."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.mla.caches import PAGED, block_slots, saturate, write_paged
from ascend_sim.references.norm import rms_norm_float
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.rotary import rotate_half
from ascend_sim.references.sources import cann_doc, op_plugin_doc
from ascend_sim.references.undefined import undefined

_OP = "npu_kv_rmsnorm_rope_cache"
_PAGE = cann_doc("ops-transformer", "posembedding/kv_rms_norm_rope_cache/docs/aclnnKvRmsNormRopeCacheV2.md")
_SOURCE = f"{op_plugin_doc(_OP, '062bcb1f')}; {_PAGE}"
_NOTE = "without is_output_kv the last two results are undefined; several heads in PA_NZ lie as in one row of N * D"


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the two results: values [B, N, S, D] in float32 and how its cache stores them."""

    name: str
    values: Tensor
    cache: Tensor
    scale: Tensor | None
    offset: Tensor | None

    def stored(self, dtype: torch.dtype) -> Tensor:
        """What goes to the cache: rounded to ``dtype``, or to int8 with a scale."""
        if self.scale is None:
            return self.values.to(dtype)
        scaled = self.values * self._per_head(self.scale)
        return saturate(scaled if self.offset is None else scaled + self._per_head(self.offset))

    def _per_head(self, given: Tensor) -> Tensor:
        """[N, D], [1, D], [D] or [1] against [B, N, S, D]."""
        return given.unsqueeze(1) if given.dim() == 2 else given


def _compute(
    kv: Tensor, gamma: Tensor, cos: Tensor, sin: Tensor, v: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor]:
    """The key part and the value part [B, N, S, ...] in float32."""
    size, rope = gamma.shape[0], cos.shape[-1]
    expected = rope + size if v is None else size
    if kv.shape[-1] != expected:
        raise limits.refuse(_OP, "kv.shape[-1]", kv.shape[-1], f"{expected} for gamma [{size}] and cos [..., {rope}]")
    normed, _ = rms_norm_float(kv[..., :size], gamma, epsilon)
    turned = kv[..., size:].float() if v is None else normed[..., :rope]
    halves = torch.cat((turned[..., ::2], turned[..., 1::2]), -1)
    rotated = halves * cos + rotate_half(halves) * sin
    if v is None:
        return rotated, normed
    return torch.cat((rotated, normed[..., rope:]), -1), v.float()


def _slots(index: Tensor, mode: str, batch: int, length: int, block_size: int) -> Tensor:
    """The slot of each token in a paged cache, [B * S]."""
    if not mode.startswith("PA_BLK"):
        return index
    # An entry is a slot in its block; tokens start at the block's first.
    first = torch.where(index < 0, index, index // block_size * block_size)
    return block_slots(first, [length] * batch, block_size)


def _write_norm(part: _Part, stored: Tensor, index: Tensor) -> None:
    """Write [B, N, S, D] to a cache [B, N, longest, D] at ``index`` [B, S]."""
    longest = part.cache.shape[2]
    if int(index.max()) >= longest:
        raise limits.refuse(_OP, "index", int(index.max()), f"positions below {longest}")
    batch, position = (index >= 0).nonzero(as_tuple=True)
    part.cache[batch, :, index[batch, position]] = stored[batch, :, position]


def _run(
    kv: Tensor,
    index: Tensor,
    parts: tuple[_Part, _Part],
    cache_mode: str,
    is_output_kv: bool,
    separate: bool,
) -> tuple[Tensor, Tensor]:
    """Write both caches; return the unquantised parts, or undefined ones."""
    _check(parts, cache_mode, separate)
    batch, heads, length, _ = kv.shape
    expected = [batch, length] if cache_mode == "Norm" else [batch * length]
    if cache_mode.startswith("PA_BLK"):
        expected = [batch * -(-length // parts[0].cache.shape[1])]
    if list(index.shape) != expected:
        raise limits.refuse(_OP, "index.shape", list(index.shape), f"{expected} for cache_mode {cache_mode!r}")
    for part in parts:
        stored = part.stored(kv.dtype)
        if cache_mode == "Norm":
            _write_norm(part, stored, index)
        else:
            slots = _slots(index, cache_mode, batch, length, part.cache.shape[1])
            tokens = stored.transpose(1, 2).reshape(batch * length, heads, -1)
            write_paged(_OP, part.cache, tokens, slots, cache_mode)
    quantised = parts[0].scale is not None or parts[1].scale is not None
    shown = is_output_kv and (cache_mode != "Norm" or (separate and quantised))
    if shown:
        return parts[0].values.to(kv.dtype), parts[1].values.to(kv.dtype)
    return undefined(parts[0].values.shape, kv.dtype), undefined(parts[1].values.shape, kv.dtype)


def _check(parts: tuple[_Part, _Part], cache_mode: str, separate: bool) -> None:
    if cache_mode != "Norm" and (cache_mode not in PAGED or "BSND" in cache_mode):
        modes = "Norm, PA, PA_BNSD, PA_NZ, PA_BLK_BNSD, PA_BLK_NZ"
        raise limits.refuse(_OP, "cache_mode", repr(cache_mode), modes)
    older = limits.active_family() is not limits.Family.A5 and not separate
    for part in parts:
        if part.scale is None and part.offset is not None:
            raise limits.refuse(_OP, f"offset of {part.name}", "given", "None without a scale")
        if older and part.scale is not None and cache_mode == "Norm":
            raise limits.refuse(_OP, f"scale of {part.name}", "given", "None in cache_mode 'Norm' without v")
        if older and part.offset is not None:
            raise limits.refuse(_OP, f"offset of {part.name}", "given", "None without v (the device ignores it)")
        if part.scale is not None and part.cache.dtype != torch.int8:
            raise limits.refuse(_OP, f"{part.name}.dtype", part.cache.dtype, "int8 with a scale")


def _parts(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    caches: tuple[Tensor, Tensor],
    scales: tuple[Tensor | None, Tensor | None],
    offsets: tuple[Tensor | None, Tensor | None],
    v: Tensor | None,
    epsilon: float,
) -> tuple[_Part, _Part]:
    key, value = _compute(kv, gamma, cos, sin, v, epsilon)
    return (
        _Part("k_cache", key, caches[0], scales[0], offsets[0]),
        _Part("ckv_cache", value, caches[1], scales[1], offsets[1]),
    )


@reference(f"npu::{_OP}", source=_SOURCE, grade=Grade.DOCUMENTED, note=_NOTE)
def npu_kv_rmsnorm_rope_cache(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    k_cache: Tensor,
    ckv_cache: Tensor,
    *,
    k_rope_scale: Tensor | None = None,
    c_kv_scale: Tensor | None = None,
    k_rope_offset: Tensor | None = None,
    c_kv_offset: Tensor | None = None,
    v: Tensor | None = None,
    epsilon: float = 1e-5,
    cache_mode: str = "Norm",
    is_output_kv: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Write ``k_cache`` (rope part) and ``ckv_cache`` (latent part) in place; return both, and the parts [B, N, S, .].

    kv is [B, 1, S, 512 + 64]: latent, then rope part in pairs, which comes out in halves; cos and sin [B, 1, S or 1,
    64]. With ``v`` [B, N, S, 128] kv is the key [B, N, S, 192], normalised whole, its first 64 elements rotated.
    A scale multiplies, an offset is added, and the cache is int8.
    """
    scales, offsets = (k_rope_scale, c_kv_scale), (k_rope_offset, c_kv_offset)
    parts = _parts(kv, gamma, cos, sin, (k_cache, ckv_cache), scales, offsets, v, epsilon)
    return k_cache, ckv_cache, *_run(kv, index, parts, cache_mode, is_output_kv, v is not None)


@reference(f"npu::{_OP}_v2", source=_SOURCE, grade=Grade.DOCUMENTED, note=_NOTE)
def npu_kv_rmsnorm_rope_cache_v2(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    k_cache: Tensor,
    ckv_cache: Tensor,
    *,
    k_rope_scale: Tensor | None = None,
    c_kv_scale: Tensor | None = None,
    k_rope_offset: Tensor | None = None,
    c_kv_offset: Tensor | None = None,
    v: Tensor | None = None,
    epsilon: float = 1e-5,
    cache_mode: str = "Norm",
    is_output_kv: bool = False,
    k_cache_dtype: int | None = None,
    ckv_cache_dtype: int | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`npu_kv_rmsnorm_rope_cache` without returning the caches."""
    if k_cache_dtype is not None or ckv_cache_dtype is not None:
        raise limits.not_simulated(_OP, "k_cache_dtype, ckv_cache_dtype", (k_cache_dtype, ckv_cache_dtype))
    scales, offsets = (k_rope_scale, c_kv_scale), (k_rope_offset, c_kv_offset)
    parts = _parts(kv, gamma, cos, sin, (k_cache, ckv_cache), scales, offsets, v, epsilon)
    return _run(kv, index, parts, cache_mode, is_output_kv, v is not None)


@reference(f"npu::{_OP}_v2_functional", source=_SOURCE, grade=Grade.DOCUMENTED, note=_NOTE)
def npu_kv_rmsnorm_rope_cache_v2_functional(
    kv: Tensor,
    gamma: Tensor,
    cos: Tensor,
    sin: Tensor,
    index: Tensor,
    k_cache: Tensor,
    ckv_cache: Tensor,
    *,
    k_rope_scale: Tensor | None = None,
    c_kv_scale: Tensor | None = None,
    k_rope_offset: Tensor | None = None,
    c_kv_offset: Tensor | None = None,
    v: Tensor | None = None,
    epsilon: float = 1e-5,
    cache_mode: str = "Norm",
    is_output_kv: bool = False,
    k_cache_dtype: int | None = None,
    ckv_cache_dtype: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """:func:`npu_kv_rmsnorm_rope_cache_v2` on copies of the caches, which come last."""
    caches = k_cache.clone(), ckv_cache.clone()
    results = npu_kv_rmsnorm_rope_cache_v2(
        kv,
        gamma,
        cos,
        sin,
        index,
        *caches,
        k_rope_scale=k_rope_scale,
        c_kv_scale=c_kv_scale,
        k_rope_offset=k_rope_offset,
        c_kv_offset=c_kv_offset,
        v=v,
        epsilon=epsilon,
        cache_mode=cache_mode,
        is_output_kv=is_output_kv,
        k_cache_dtype=k_cache_dtype,
        ckv_cache_dtype=ckv_cache_dtype,
    )
    return *results, *caches
