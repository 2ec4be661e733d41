# SPDX-License-Identifier: Apache-2.0
"""Writing tokens into a paged key/value cache and reading them back.

A slot is ``block * block_size + offset``. Caches are ``[blocks, block_size, heads, head_size]`` ("Norm") or, in the
fractal layout ("PA_NZ"), ``[blocks, heads * head_size / c, block_size, c]`` with c elements of 32 bytes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc

_SKIPS = "slots below 0 are skipped, as in the vendor's test of the atb operator; the page allows none"


def write_slots(op: str, cache: Tensor, tokens: Tensor, slots: Tensor, fractal: bool) -> None:
    """Write ``tokens`` [T, heads, head_size] to ``slots`` [at most T] of ``cache``; slots below 0 are skipped.

    Raises:
        RuntimeError: If a slot is past the cache, or a token of the cache is not contiguous.
    """
    if slots.numel() > tokens.shape[0]:
        raise limits.refuse(op, "slots", slots.numel(), f"at most {tokens.shape[0]}, the number of tokens")
    if not fractal:
        if not cache[0, 0].is_contiguous():
            raise limits.refuse(op, "cache.stride()", cache.stride(), "caches whose tokens are contiguous")
        torch.ops.ascend_sim.write_slots(op, cache, tokens.contiguous(), slots.contiguous())
        return
    size = cache.shape[0] * cache.shape[2]
    if slots.numel() and int(slots.max()) >= size:
        raise limits.refuse(op, "slots", int(slots.max()), f"slots below {size} (blocks x block_size)")
    kept = slots >= 0
    slots, tokens = slots[kept].long(), tokens[: slots.numel()][kept]
    _, columns, block_size, width = cache.shape
    cache[slots // block_size, :, slots % block_size] = tokens.reshape(slots.shape[0], columns, width)


def _is_fractal(cache: Tensor, tokens: Tensor) -> bool:
    """Whether a 4-D cache holds tokens [T, heads, head_size] in the fractal layout, told by its shape."""
    if cache.shape[2:] == tokens.shape[1:] or cache.dim() != 4:
        return False
    return cache.shape[1] * cache.shape[3] == tokens.shape[1] * tokens.shape[2]


@reference("atb::_npu_reshape_and_cache", source=op_plugin_test("test_atb_reshape_and_cache"), grade=Grade.GOLDEN)
def _npu_reshape_and_cache(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_indices: Tensor
) -> None:
    """Write key and value [T, heads, head_size] to ``slot_indices`` [T]; the caches' shape tells their layout."""
    for cache, tokens in ((key_cache, key), (value_cache, value)):
        write_slots("_npu_reshape_and_cache", cache, tokens, slot_indices, _is_fractal(cache, tokens))


@reference(
    "atb::_npu_reshape_and_cache_siso", source=op_plugin_test("test_atb_reshape_and_cache_siso"), grade=Grade.GOLDEN
)
def _npu_reshape_and_cache_siso(key: Tensor, key_cache: Tensor, slot_indices: Tensor) -> None:
    """:func:`_npu_reshape_and_cache` for one cache."""
    write_slots("_npu_reshape_and_cache_siso", key_cache, key, slot_indices, _is_fractal(key_cache, key))


def _is_scatter_fractal(cache_mode: str | None, compress_lens: Tensor | None) -> bool:
    """Whether the scatter operators' caches are fractal."""
    if compress_lens is not None:
        raise limits.not_simulated("npu_scatter_pa_kv_cache", "compress_lens", "a tensor")
    return cache_mode == "PA_NZ"


@reference(
    "npu::npu_scatter_pa_kv_cache", source=wheel_doc("npu_scatter_pa_kv_cache"), grade=Grade.DOCUMENTED, note=_SKIPS
)
def npu_scatter_pa_kv_cache(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
    *,
    compress_lens: Tensor | None = None,
    compress_seq_offsets: Tensor | None = None,
    seq_lens: Tensor | None = None,
    cache_mode: str | None = "PA_NZ",
) -> None:
    """Write key and value [T, heads, head_size] to ``slot_mapping`` [T]; the compressed form is not simulated."""
    fractal = _is_scatter_fractal(cache_mode, compress_lens)
    for cache, tokens in ((key_cache, key), (value_cache, value)):
        write_slots("npu_scatter_pa_kv_cache", cache, tokens, slot_mapping, fractal)


@reference(
    "npu::npu_scatter_pa_kv_cache_functional",
    source=wheel_doc("npu_scatter_pa_kv_cache"),
    grade=Grade.DOCUMENTED,
    note=_SKIPS,
)
def npu_scatter_pa_kv_cache_functional(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slot_mapping: Tensor, **given: Any
) -> tuple[Tensor, Tensor]:
    """:func:`npu_scatter_pa_kv_cache` on copies of the caches, which are returned."""
    written = key_cache.clone(), value_cache.clone()
    npu_scatter_pa_kv_cache(key, value, *written, slot_mapping, **given)
    return written


def _gather(cache: Tensor, block_tables: Tensor, lengths: list[int], offsets: list[int] | None, out: Tensor) -> Tensor:
    """Copy each request's first ``lengths[i]`` tokens, from block ``offsets[i] // block_size`` on, into ``out``."""
    block_size = cache.shape[1]
    start = 0
    for request, length in enumerate(lengths):
        first = 0 if offsets is None else offsets[request] // block_size
        blocks = block_tables[request, first : first - (-length // block_size)].long()
        tokens = cache[blocks].flatten(0, 1)[:length]
        out[start : start + length] = tokens.reshape(length, *out.shape[1:])
        start += length
    return out


def _lengths(seq_lens: Tensor, cumulative: bool) -> list[int]:
    return (seq_lens.diff() if cumulative else seq_lens).tolist()


@reference(
    "npu::npu_gather_pa_kv_cache",
    source=cann_doc("ops-transformer", "attention/gather_pa_kv_cache/docs/aclnnGatherPaKvCache.md"),
    grade=Grade.DOCUMENTED,
)
def npu_gather_pa_kv_cache(
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    seq_lens: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    seq_offset: Tensor | None = None,
    is_seq_lens_cumsum: bool = False,
) -> None:
    """Gather each request's tokens from its blocks into ``key`` and ``value`` [sum of lengths, heads, head_size].

    ``seq_lens`` are lengths [B] or, cumulative, [B + 1] from 0; ``seq_offset`` [B] skips whole blocks of the table.
    """
    lengths = _lengths(seq_lens, is_seq_lens_cumsum)
    if sum(lengths) != key.shape[0]:
        raise limits.refuse(
            "npu_gather_pa_kv_cache", "key.shape[0]", key.shape[0], f"{sum(lengths)}, the sum of seq_lens"
        )
    offsets = None if seq_offset is None else seq_offset.tolist()
    _gather(key_cache, block_tables, lengths, offsets, key)
    _gather(value_cache, block_tables, lengths, offsets, value)


@reference(
    "npu::npu_gather_pa_kv_cache_functional",
    source=cann_doc("ops-transformer", "attention/gather_pa_kv_cache/docs/aclnnGatherPaKvCache.md"),
    grade=Grade.DOCUMENTED,
)
def npu_gather_pa_kv_cache_functional(
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    seq_lens: Tensor,
    key: Tensor,
    value: Tensor,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    """:func:`npu_gather_pa_kv_cache` into new tensors."""
    out = key.clone(), value.clone()
    npu_gather_pa_kv_cache(key_cache, value_cache, block_tables, seq_lens, *out, **given)
    return out


@reference("atb::npu_paged_cache_load.out", source=op_plugin_test("test_atb_paged_cache_load"), grade=Grade.GOLDEN)
def npu_paged_cache_load_out(
    key_cache: Tensor,
    value_cache: Tensor,
    block_table: Tensor,
    context_lens: Tensor,
    *,
    seq_starts: Tensor | None = None,
    cumsum: bool = False,
    key: Tensor,
    value: Tensor,
) -> tuple[Tensor, Tensor]:
    """The atb form of :func:`npu_gather_pa_kv_cache`."""
    offsets = None if seq_starts is None else seq_starts.tolist()
    lengths = _lengths(context_lens, cumsum)
    _gather(key_cache, block_table, lengths, offsets, key)
    _gather(value_cache, block_table, lengths, offsets, value)
    return key, value


@reference("atb::npu_paged_cache_load", source=op_plugin_test("test_atb_paged_cache_load"), grade=Grade.GOLDEN)
def npu_paged_cache_load(
    key_cache: Tensor, value_cache: Tensor, block_table: Tensor, context_lens: Tensor, **given: Any
) -> tuple[Tensor, Tensor]:
    """:func:`npu_paged_cache_load_out` into new tensors [sum of lengths, heads, size]."""
    tokens = sum(_lengths(context_lens, given.get("cumsum", False)))
    key, value = (cache.new_empty(tokens, *cache.shape[2:]) for cache in (key_cache, value_cache))
    return npu_paged_cache_load_out(key_cache, value_cache, block_table, context_lens, **given, key=key, value=value)


@reference("npu::npu_scatter_nd_update_", source=wheel_doc("npu_scatter_nd_update_"), grade=Grade.DOCUMENTED)
def npu_scatter_nd_update_(input: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """``input[indices[..., 0], ..., indices[..., a - 1]] = updates`` for indices [..., a], in place."""
    input[tuple(indices.long().unbind(-1))] = updates
    return input


@reference("npu::npu_scatter_nd_update", source=wheel_doc("npu_scatter_nd_update"), grade=Grade.DOCUMENTED)
def npu_scatter_nd_update(input: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """:func:`npu_scatter_nd_update_` on a copy of ``input``."""
    return npu_scatter_nd_update_(input.clone(memory_format=torch.contiguous_format), indices, updates)
