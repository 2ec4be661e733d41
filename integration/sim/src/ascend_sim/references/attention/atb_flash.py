# SPDX-License-Identifier: Apache-2.0
"""Attention of the Ascend Transformer Boost library within packed sequences, into an output tensor."""

from __future__ import annotations

from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.attention import atb_masks as masks
from ascend_sim.references.attention import atb_requests as forms
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import op_plugin_test


@reference("atb::_npu_flash_attention", source=op_plugin_test("test_atb_flash_attention"), grade=Grade.GOLDEN)
def _npu_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    seq_len: Tensor,
    scale_value: float,
    num_heads: int,
    num_kv_heads: int,
    out: Tensor,
) -> None:
    """Prefill of packed sequences with an additive ``mask`` [max length, max length], into ``out``."""
    op, each = "_npu_flash_attention", seq_len.tolist()
    if mask.dim() != 2 or mask.shape[0] < max(each):
        raise limits.not_simulated(op, "mask.shape", list(mask.shape))
    work = forms.packed(op, (query, key, value), each, each, scale_value, (num_heads, num_kv_heads))
    masks.masked(op, work, mask, None, masks.NORMAL, out)


@reference(
    "atb::_npu_flash_attention_v2.out",
    source=op_plugin_test("test_atb_flash_attention_v2"),
    grade=Grade.GOLDEN,
    note="mask types 0 to 4; a compressed mask with slopes is taken as slopes * (i - j) below the diagonal",
)
def _npu_flash_attention_v2(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seq_len: list[int],
    *,
    mask: Tensor | None = None,
    slopes: Tensor | None = None,
    kernel_type: int = 0,
    mask_type: int = 2,
    scale_value: float = 1.0,
    num_heads: int = 0,
    num_kv_heads: int = 0,
    out: Tensor,
) -> Tensor:
    """:func:`_npu_flash_attention` with lengths on the host and a choice of masks."""
    op, each = "_npu_flash_attention_v2", list(seq_len)
    work = forms.packed(op, (query, key, value), each, each, scale_value, (num_heads, num_kv_heads))
    return masks.masked(op, work, mask, slopes, mask_type, out)


@reference(
    "atb::_npu_flash_attention_v3",
    source=op_plugin_test("test_atb_flash_attention_v3"),
    grade=Grade.GOLDEN,
    note="mask_type 3, the compressed causal mask in either layout, is simulated",
)
def _npu_flash_attention_v3(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    seq_len: Tensor,
    scale_value: float,
    num_heads: int,
    num_kv_heads: int,
    *,
    mask_type: int | None = 3,
    out: Tensor,
) -> None:
    """Causal prefill with a compressed mask [2048, 2048], or that as fractal [1, 128, 2048, 16]."""
    op, each = "_npu_flash_attention_v3", seq_len.tolist()
    if mask_type != masks.COMPRESSED:
        raise limits.not_simulated(op, "mask_type", mask_type)
    work = forms.packed(op, (query, key, value), each, each, scale_value, (num_heads, num_kv_heads))
    masks.masked(op, work, mask, None, masks.COMPRESSED, out)


@reference(
    "atb::_npu_flash_attention_unpad", source=op_plugin_test("test_atb_flash_attention_unpad"), grade=Grade.GOLDEN
)
def _npu_flash_attention_unpad(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seq_len: Tensor,
    scale_value: float,
    num_heads: int,
    num_kv_heads: int,
    out: Tensor,
) -> None:
    """Attention within packed sequences, every token to every token, into ``out``."""
    op, each = "_npu_flash_attention_unpad", seq_len.tolist()
    masks.run(forms.packed(op, (query, key, value), each, each, scale_value, (num_heads, num_kv_heads)), out)


@reference(
    "atb::_npu_flash_attention_unpad_v2",
    source=op_plugin_test("test_atb_flash_attention_unpad"),
    grade=Grade.GOLDEN,
    note="kernel_type chooses the precision of the device's kernel; the simulation computes in float32 for each",
)
def _npu_flash_attention_unpad_v2(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    seq_len: Tensor,
    scale_value: float,
    num_heads: int,
    num_kv_heads: int,
    *,
    kernel_type: int | None = 0,
    out: Tensor,
) -> None:
    """:func:`_npu_flash_attention_unpad` with a choice of kernel."""
    _npu_flash_attention_unpad(query, key, value, seq_len, scale_value, num_heads, num_kv_heads, out)


@reference(
    "atb::_npu_flash_attention_prefix_v2.out",
    source=op_plugin_test("test_atb_flash_attention_prefix_v2"),
    grade=Grade.GOLDEN,
    note="mask types 3 and 4",
)
def _npu_flash_attention_prefix_v2(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_table: Tensor,
    mask: Tensor,
    seq_len: list[int],
    context_lens: list[int],
    *,
    slopes: Tensor | None = None,
    kernel_type: int = 1,
    mask_type: int = 3,
    num_kv_heads: int = 0,
    num_heads: int = 0,
    scale_value: float = 1.0,
    out: Tensor,
) -> Tensor:
    """Causal prefill of ``seq_len`` new tokens over ``context_lens`` cached ones, paged."""
    op, heads = "_npu_flash_attention_prefix_v2", (num_heads, num_kv_heads)
    if mask_type not in (masks.COMPRESSED, masks.ALIBI_COMPRESSED):
        raise limits.not_simulated(op, "mask_type", mask_type)
    caches = (key_cache, value_cache)
    work = forms.paged(op, query, caches, heads, scale_value, block_table, list(seq_len), list(context_lens))
    return masks.masked(op, work, mask, slopes, mask_type, out)
