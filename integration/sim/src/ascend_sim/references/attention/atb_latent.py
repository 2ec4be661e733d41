# SPDX-License-Identifier: Apache-2.0
"""Multi-head latent attention of the Ascend Transformer Boost library: query and key in two parts."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import atb_masks as masks
from ascend_sim.references.attention import atb_requests as forms
from ascend_sim.references.attention.masks import Band
from ascend_sim.references.attention.paging import Pages
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test

_MODES = "one token a request; calc_type_spec, masks and the int8 cache are not simulated"


def _latent(
    op: str,
    query: tuple[Tensor, Tensor],
    caches: tuple[Tensor, Tensor],
    table: Tensor,
    each: list[int],
    heads: tuple[int, int],
    scale: float,
    given: dict[str, Any],
) -> tuple[Tensor, Tensor]:
    """The result and the log-sum-exp of one token a request."""
    _refuse_modes(op, given)
    if len(each) != query[0].shape[0]:
        raise limits.refuse(op, "len(context_lens)", len(each), f"{query[0].shape[0]}, one per query token")
    latent, rope = (forms.cache_view(op, n, c, heads[1]) for n, c in zip(("ctkv", "k_rope"), caches, strict=True))
    pages, used = Pages(op, table, each, latent.shape[1], latent.shape[0]).compact()
    latent = latent[used]
    tokens = torch.cat([latent, rope[used]], -1), latent
    work = forms.paged(op, torch.cat(query, -1), tokens, heads, scale, pages.table, [1] * len(each), each)
    return work.attend()


@reference(
    "atb::npu_multi_head_latent_attention",
    "atb::npu_multi_head_latent_attention.out",
    source=op_plugin_test("test_atb_mla_krope_ctkv"),
    grade=Grade.GOLDEN,
    note=_MODES,
)
def _multi_head_latent_attention(
    q_nope: Tensor,
    q_rope: Tensor,
    ctkv: Tensor,
    k_rope: Tensor,
    block_tables: Tensor,
    context_lens: list[int],
    q_headnum: int,
    qk_scale: float,
    kv_headnum: int,
    **given: Any,
) -> Tensor:
    """Decode with absorbed weights: q_nope [B, H, 512] and q_rope [B, H, 64] over cached latents and rotary parts."""
    op, heads = "npu_multi_head_latent_attention", (q_headnum, kv_headnum)
    query, caches = (q_nope, q_rope), (ctkv, k_rope)
    found, _ = _latent(op, query, caches, block_tables, list(context_lens), heads, qk_scale, given)
    out: Tensor | None = given.get("output")
    return found.reshape(q_nope.shape) if out is None else out.copy_(found.reshape(out.shape))


@reference(
    "atb::npu_multi_head_latent_attention.lse",
    "atb::npu_multi_head_latent_attention.lse_out",
    source=op_plugin_test("test_atb_mla_with_lse"),
    grade=Grade.GOLDEN,
    note=_MODES,
)
def _multi_head_latent_attention_lse(
    q_nope: Tensor,
    q_rope: Tensor,
    ctkv: Tensor,
    k_rope: Tensor,
    block_tables: Tensor,
    context_lens: list[int],
    q_headnum: int,
    qk_scale: float,
    kv_headnum: int,
    return_lse: bool,
    **given: Any,
) -> tuple[Tensor, Tensor]:
    """:func:`_multi_head_latent_attention` with the log-sum-exp [B, H, 1], if asked for, with calc_type_ring."""
    op, heads = "npu_multi_head_latent_attention", (q_headnum, kv_headnum)
    query, caches = (q_nope, q_rope), (ctkv, k_rope)
    found, sums = _latent(op, query, caches, block_tables, list(context_lens), heads, qk_scale, given)
    asked = return_lse and given.get("calc_type") == "calc_type_ring"
    if "output" in given:
        output, lse = given["output"], given["lse"]
        output.copy_(found.reshape(output.shape))
        return output, lse.copy_(sums.reshape(lse.shape)) if asked else lse
    return found.reshape(q_nope.shape), sums[:, :, None].to(q_rope.dtype) if asked else q_rope.new_empty(0)


def _refuse_modes(op: str, given: dict[str, Any]) -> None:
    for name in ("mask", "qseqlen", "qk_descale", "pv_descale"):
        if given.get(name) is not None:
            raise limits.not_simulated(op, name, "given")
    simulated = {
        "mask_type": ("undefined",),
        "calc_type": ("calc_type_undefined", "calc_type_ring"),
        "cache_mode": ("krope_ctkv", "nzcache"),
    }
    for name, values in simulated.items():
        if given.get(name) not in (None, *values):
            raise limits.not_simulated(op, name, given[name])


@reference(
    "atb::npu_ring_mla",
    "atb::npu_ring_mla.out",
    source=op_plugin_test("test_atb_ring_mla"),
    grade=Grade.GOLDEN,
    note="kernel_type chooses the precision of the device's kernel; the simulation computes in float32 for each",
)
def _ring_mla(
    q_nope: Tensor,
    q_rope: Tensor,
    k_nope: Tensor,
    k_rope: Tensor,
    value: Tensor,
    mask: Tensor,
    seqlen: Tensor,
    head_num: int,
    kv_head_num: int,
    *,
    pre_out: Tensor | None = None,
    prev_lse: Tensor | None = None,
    qk_scale: float = 1.0,
    kernel_type: str | None = None,
    mask_type: str | None = None,
    input_layout: str | None = None,
    calc_type: str | None = None,
    **out: Tensor,
) -> tuple[Tensor, Tensor]:
    """Attention of packed queries to one part of their keys, merged with the result for the parts before.

    ``seqlen`` on the host is [B] or [2, B], lengths of queries and keys. The results are [T, H, Dv] and log-sum-exp
    [H, T] in float32. Unless calc_type is calc_type_first_ring, which is the default, ``pre_out`` and ``prev_lse`` are
    such results of the parts before.
    """
    op = "npu_ring_mla"
    modes = {
        "kernel_type": (kernel_type, ("kernel_type_high_precision", "kernel_type_default")),
        "mask_type": (mask_type, ("no_mask", "mask_type_triu")),
        "input_layout": (input_layout, ("type_bsnd",)),
        "calc_type": (calc_type, ("calc_type_first_ring", "calc_type_default")),
    }
    for name, (given, allowed) in modes.items():
        if given is not None and given not in allowed:
            raise limits.refuse(op, name, given, ", ".join(allowed))
    lengths = seqlen.tolist()
    queries, keys = lengths if seqlen.dim() == 2 else (lengths, lengths)
    query, key = torch.cat([q_nope, q_rope], -1), torch.cat([k_nope, k_rope], -1)
    work = forms.packed(op, (query, key, value), queries, keys, qk_scale, (head_num, kv_head_num))
    if mask_type == "mask_type_triu":
        work.band = Band(after=0, lower_right=True)
    part, sums = work.attend()
    total = sums.T.contiguous()
    if calc_type == "calc_type_default":
        if pre_out is None or prev_lse is None:
            raise limits.refuse(op, "pre_out, prev_lse", None, "the results before with calc_type_default")
        part, total = _merge(part, total, pre_out, prev_lse)
    if out:
        return out["output"].copy_(part), out["softmax_lse"].copy_(total)
    return part, total


def _merge(part: Tensor, lse: Tensor, before: Tensor, lse_before: Tensor) -> tuple[Tensor, Tensor]:
    """Results for two disjoint sets of keys as the result for both; +inf stands for no keys."""
    sums = torch.stack([lse_before.float(), lse])
    sums.masked_fill_(sums == torch.inf, -torch.inf)
    total = sums.logsumexp(0)
    weights = (sums - total.masked_fill(total == -torch.inf, 0)).exp().transpose(1, 2)[..., None]
    merged = before.float() * weights[0] + part.float() * weights[1]
    return merged.to(part.dtype), total.masked_fill_(total == -torch.inf, torch.inf)


@reference(
    "atb::npu_self_attention_prefix_encoder",
    "atb::npu_self_attention_prefix_encoder.out",
    source=op_plugin_test("test_atb_selfattention_prefix_encoder"),
    grade=Grade.GOLDEN,
    note="the types alibi_compress_sort and masks of other values are not simulated",
)
def _prefix_encoder(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    block_tables: Tensor,
    seqlen: list[int],
    kv_seqlen: list[int],
    q_headnum: int,
    qk_scale: float,
    kv_headnum: int,
    *,
    mask: Tensor | None = None,
    slopes: Tensor | None = None,
    mask_type: str | None = None,
    **given: Tensor,
) -> Tensor:
    """Causal prefill of ``seqlen`` new tokens, the last of ``kv_seqlen`` cached ones, paged."""
    op = "npu_self_attention_prefix_encoder"
    heads, each, context = (q_headnum, kv_headnum), list(seqlen), list(kv_seqlen)
    work = forms.paged(op, query, (key, value), heads, qk_scale, block_tables, each, context)
    out = given["output"] if given else torch.empty_like(query)
    if mask_type is None or mask_type == "mask_type_causal_mask":
        work.band = Band(after=0, lower_right=True)
        return masks.run(work, out)
    if mask_type == "mask_type_norm_compress":
        return masks.masked(op, work, mask, slopes, masks.COMPRESSED, out)
    if mask_type == "mask_type_alibi_compress":
        return masks.masked(op, work, mask, slopes, masks.ALIBI_COMPRESSED, out)
    raise limits.not_simulated(op, "mask_type", mask_type)
