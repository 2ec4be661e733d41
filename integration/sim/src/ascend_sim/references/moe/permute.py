# SPDX-License-Identifier: Apache-2.0
"""Copying tokens to the rows of their experts and adding the experts' results up again."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc
from ascend_sim.references.undefined import undefined


def _not_padded(op: str, padded_mode: bool, restore_shape: list[int] | None = None) -> None:
    if padded_mode or restore_shape is not None:
        raise limits.refuse(op, "padded_mode, restore_shape", (padded_mode, restore_shape), "False and None")


def invert(order: Tensor) -> Tensor:
    """The inverse of a permutation, int32."""
    inverse = torch.empty_like(order, dtype=torch.int32)
    inverse[order] = torch.arange(len(order), dtype=torch.int32)
    return inverse


@reference(
    "npu::npu_moe_token_permute", source=op_plugin_test("test_npu_moe_token_permute_and_unpermute"), grade=Grade.GOLDEN
)
def npu_moe_token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Tokens [T, H] repeated K times and sorted by expert, and the row of each choice, int32 [T * K].

    ``indices`` [T, K] or [T] are experts. ``num_out_tokens`` keeps the first rows (or drops as many, if negative).
    """
    _not_padded("npu_moe_token_permute", padded_mode)
    flat = indices.reshape(-1)
    order = flat.argsort(stable=True)
    kept = order[:num_out_tokens] if num_out_tokens else order
    return tokens.index_select(0, kept // (indices.shape[1] if indices.dim() == 2 else 1)), invert(order)


@reference(
    "npu::npu_moe_token_unpermute",
    source=op_plugin_test("test_npu_moe_token_permute_and_unpermute"),
    grade=Grade.GOLDEN,
)
def npu_moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: list[int] | None = None,
) -> Tensor:
    """``out[t] = sum over k of probs[t, k] * permuted_tokens[sorted_indices[t * K + k]]``, added up in float32."""
    _not_padded("npu_moe_token_unpermute", padded_mode, restore_shape)
    gathered = permuted_tokens.index_select(0, sorted_indices)
    if probs is None:
        return gathered
    grouped = gathered.view(-1, probs.shape[1], permuted_tokens.shape[1])
    return torch.einsum("tk,tkh->th", probs.float(), grouped.float()).to(permuted_tokens.dtype)


@reference(
    "npu::_npu_moe_token_unpermute",
    source="torch_npu 2.13.0 _meta_registrations.py: _npu_moe_token_unpermute; " + wheel_doc("npu_moe_token_unpermute"),
    grade=Grade.DOCUMENTED,
)
def _npu_moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: list[int] | None = None,
) -> tuple[Tensor, Tensor]:
    """:func:`npu_moe_token_unpermute` and a copy of its input for the backward pass."""
    out = npu_moe_token_unpermute(permuted_tokens, sorted_indices, probs, padded_mode, restore_shape)
    return out, permuted_tokens.clone()


@reference(
    "npu::npu_moe_token_permute_with_routing_map",
    source=op_plugin_test("test_npu_moe_token_permute_with_routing_map"),
    grade=Grade.GOLDEN,
)
def npu_moe_token_permute_with_routing_map(
    tokens: Tensor,
    routing_map: Tensor,
    *,
    probs: Tensor | None = None,
    num_out_tokens: int | None = None,
    drop_and_pad: bool = False,
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Tokens [T, H] of each expert in turn, their probabilities, and the indices between the two.

    Without ``drop_and_pad`` each token has K experts in ``routing_map`` [T, E], and ``indices[t * K + k]`` is the row
    of a token's k-th choice. With it every expert has ``num_out_tokens // E`` rows: first its tokens, then others;
    ``indices`` are the tokens of the rows.
    """
    count, experts = routing_map.shape
    wanted = count if num_out_tokens is None else num_out_tokens
    chosen = routing_map.bool().t()
    if drop_and_pad:
        source = chosen.byte().sort(dim=-1, descending=True, stable=True).indices[:, : wanted // experts]
        permuted_probs = None if probs is None else probs.t().gather(1, source).flatten()
        source = source.flatten()
        return tokens.index_select(0, source), permuted_probs, source.int()
    source = torch.arange(count).expand(experts, -1)[chosen]
    if len(source) != wanted // count * count:
        raise limits.refuse(
            "npu_moe_token_permute_with_routing_map",
            "num_out_tokens",
            num_out_tokens,
            f"{len(source)}, the set elements of routing_map",
        )
    order = source.argsort(stable=True)
    return tokens.index_select(0, source), None if probs is None else probs.t()[chosen], order.int()


@reference(
    "npu::npu_moe_token_unpermute_with_routing_map",
    source=cann_doc(
        "ops-transformer",
        "moe/moe_token_unpermute_with_routing_map/docs/aclnnMoeTokenUnpermuteWithRoutingMap.md",
    ),
    grade=Grade.DOCUMENTED,
    note="the probability of a row is that of its expert and token, which case (2) of the page describes by "
    "masked_select of the transposed tables before it writes permuteProbs[i]",
)
def npu_moe_token_unpermute_with_routing_map(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    restore_shape: list[int],
    *,
    probs: Tensor | None = None,
    routing_map: Tensor | None = None,
    drop_and_pad: bool = False,
) -> Tensor:
    """Add the rows of :func:`npu_moe_token_permute_with_routing_map`, times their probabilities, up by token.

    Index -1 marks an unused choice. Sums are float32.
    """
    op = "npu_moe_token_unpermute_with_routing_map"
    values = permuted_tokens.float()
    out = values.new_zeros(restore_shape)
    if drop_and_pad:
        token = sorted_indices.long()
        if probs is not None:
            expert = torch.arange(len(token)) // (len(token) // probs.shape[1])
            values = values * probs[token, expert].float().unsqueeze(1)
        return out.index_add_(0, token, values).to(permuted_tokens.dtype)
    if probs is not None:
        if routing_map is None:
            raise limits.refuse(op, "routing_map", None, "a table, with probs")
        values = values * probs.t()[routing_map.bool().t()].float().unsqueeze(1)
    slots = len(sorted_indices) // restore_shape[0]
    used = (sorted_indices >= 0).nonzero().flatten()
    return out.index_add_(0, used // slots, values[sorted_indices[used].long()]).to(permuted_tokens.dtype)


@reference(
    "npu::_npu_moe_token_unpermute_with_routing_map",
    source="torch_npu 2.13.0 _meta_registrations.py: _npu_moe_token_unpermute_with_routing_map; "
    + cann_doc(
        "ops-transformer",
        "moe/moe_token_unpermute_with_routing_map/docs/aclnnMoeTokenUnpermuteWithRoutingMap.md",
    ),
    grade=Grade.DOCUMENTED,
    note="what is kept for the backward pass is undefined",
)
def _npu_moe_token_unpermute_with_routing_map(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    restore_shape: list[int],
    *,
    probs: Tensor | None = None,
    routing_map: Tensor | None = None,
    drop_and_pad: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """:func:`npu_moe_token_unpermute_with_routing_map` with results for the backward pass."""
    out = npu_moe_token_unpermute_with_routing_map(
        permuted_tokens,
        sorted_indices,
        restore_shape,
        probs=probs,
        routing_map=routing_map,
        drop_and_pad=drop_and_pad,
    )
    index, token = (undefined(sorted_indices.shape, sorted_indices.dtype) for _ in range(2))
    return out, index, token, None if probs is None else undefined(sorted_indices.shape, probs.dtype)
