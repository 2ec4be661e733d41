"""Scores of a lightning indexer, and the blocks of keys with the highest ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.sparse.indexer_scores.calls import calls
from ascend_kernels.ops.sparse.indexer_scores.naive import indexer_scores_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.sparse.indexer_scores.triton import indexer_scores_triton

    return indexer_scores_triton


def _fake(
    query: torch.Tensor, weights: torch.Tensor, key_cache: torch.Tensor, block_table: torch.Tensor, *others: Any
) -> torch.Tensor:
    return query.new_empty(query.shape[0], block_table.shape[1] * key_cache.shape[1] // others[2], dtype=torch.float32)


_operator = register(
    "indexer_scores(Tensor query, Tensor weights, Tensor key_cache, Tensor block_table, Tensor requests, "
    "Tensor lengths, int block) -> Tensor",
    naive=indexer_scores_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def indexer_scores(
    query: torch.Tensor,
    weights: torch.Tensor,
    key_cache: torch.Tensor,
    block_table: torch.Tensor,
    requests: torch.Tensor,
    lengths: torch.Tensor,
    *,
    block: int = 1,
) -> torch.Tensor:
    """``score[t, s] = sum over h of weights[t, h] * relu(query[t, h] . key[s])`` (DeepSeek-V3.2, lightning indexer).

    Args:
        query: fp16, bf16 or fp32 ``[tokens, heads, size]``; rows strided at will.
        weights: ``[tokens, heads]`` of any float dtype.
        key_cache: ``[blocks, page, size]`` of the query's dtype, one key per token for all heads.
        block_table: int32 or int64 ``[requests, pages]``; rows may be strided.
        requests: int32 or int64 ``[tokens]``, the request of each token.
        lengths: int32 or int64 ``[tokens]``, how many keys each token sees: its position plus 1.
        block: keys that share a score, the highest of theirs; divides a page. 1: each key has its own.

    Returns:
        fp32 ``[tokens, pages * page / block]``; -inf for keys or blocks that a token does not see.

    Raises:
        ValueError: shapes or dtypes that do not go together, or blocks that do not fill a page.
    """
    if (
        query.dim() != 3
        or key_cache.dim() != 3
        or query.shape[2] != key_cache.shape[2]
        or query.dtype != key_cache.dtype
        or query.stride(2) != 1
        or key_cache.stride(2) != 1
    ):
        raise ValueError(
            f"indexer_scores: query {query.dtype} {tuple(query.shape)} and key_cache {key_cache.dtype} "
            f"{tuple(key_cache.shape)}: [tokens, heads, size] and [blocks, page, size] of one dtype, the elements of a "
            "row neighbours, go"
        )
    tokens = query.shape[0]
    if weights.shape != query.shape[:2] or requests.shape != (tokens,) or lengths.shape != (tokens,):
        raise ValueError(
            f"indexer_scores: weights {tuple(weights.shape)}, requests {tuple(requests.shape)}, lengths "
            f"{tuple(lengths.shape)} for {tokens} tokens: [tokens, heads] and twice [tokens] go"
        )
    if block < 1 or key_cache.shape[1] % block:
        raise ValueError(f"indexer_scores: blocks of {block} keys in pages of {key_cache.shape[1]}: a divisor goes")
    return _operator(query, weights, key_cache, block_table, requests, lengths, block)


def top_blocks(
    scores: torch.Tensor, k: int, lengths: torch.Tensor, *, block: int = 1, first: int = 0, last: int = 0
) -> torch.Tensor:
    """The ``k`` blocks of keys with the highest scores of each token, by torch's own selection.

    Args:
        scores: fp32 ``[tokens, blocks]`` of :func:`ascend_kernels.indexer_scores`.
        k: how many; the rest is -1 where a token sees fewer.
        lengths: int32 or int64 ``[tokens]``, as there.
        block: keys of a block, as there.
        first: so many blocks from the beginning are taken whatever their scores.
        last: so many of the blocks up to the token's own, likewise.

    Returns:
        int32 ``[tokens, k]``, those taken whatever their scores first, then by falling score.

    Raises:
        ValueError: more blocks to take whatever their scores than ``k``.
    """
    if k < 1 or first + last > k or min(first, last) < 0:
        raise ValueError(f"top_blocks: k {k}, first {first}, last {last}: 0 <= first + last <= k and 0 < k go")
    number = torch.arange(scores.shape[1], device=scores.device)
    seen = ((lengths + block - 1) // block)[:, None]
    always = (number < first) | (number >= seen - last)
    forced = torch.where(always & (number < seen), float("inf"), scores)
    values, blocks = forced.topk(min(k, scores.shape[1]), dim=1)
    found = torch.where(values == float("-inf"), -1, blocks).int()
    return torch.nn.functional.pad(found, (0, k - found.shape[1]), value=-1)
