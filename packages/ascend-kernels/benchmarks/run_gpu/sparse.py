"""Attention over selected keys: scores of a lightning indexer, and attention over the best blocks."""

from __future__ import annotations

from collections.abc import Iterator

import torch

import ascend_kernels
from run_gpu.case import Case


def _bf16(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def cases() -> Iterator[Case]:
    requests, page, pages = 64, 128, 64
    keys = page * pages
    table = torch.randperm(requests * pages, device="cuda").int().view(requests, pages)
    own = torch.arange(requests, device="cuda", dtype=torch.int32)
    lengths = torch.full((requests,), keys, device="cuda", dtype=torch.int32)
    index_query, weights = _bf16(requests, 64, 128), torch.rand(requests, 64, device="cuda")
    index_cache = _bf16(requests * pages, page, 128)

    def scores(query: torch.Tensor, weights: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        rows = cache[table[: len(query)].long()].flatten(1, 2)
        return (torch.relu(query @ rows.mT) * weights[..., None].to(query.dtype)).sum(1)

    compiled = torch.compile(scores)
    yield Case(
        f"indexer_scores T{requests} H64 keys {keys}",
        lambda: ascend_kernels.indexer_scores(index_query, weights, index_cache, table, own, lengths),
        lambda: scores(index_query[:4].double(), weights[:4].double(), index_cache.double()),
        "matmul",
        index_cache.nbytes + requests * keys * 4,
        {"torch.compile": lambda: compiled(index_query, weights, index_cache)},
        rows=4,
    )
    heads, kv_heads, size, chosen = 32, 4, 128, 16
    query, key, value = _bf16(requests, heads, size), *(_bf16(requests * pages, page, kv_heads, size) for _ in range(2))
    blocks = torch.rand(requests, kv_heads, pages, device="cuda").topk(chosen).indices.int()

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        count = len(query)
        listed = table[own[:count, None, None].long(), blocks[:count].long()].long()
        head = torch.arange(kv_heads, device="cuda")[:, None]
        # Token, kv head, block, key of the block, size.
        k, v = (cache.permute(0, 2, 1, 3)[listed, head].flatten(2, 3) for cache in (key, value))
        grouped = query.view(count, kv_heads, -1, size)
        return (torch.softmax(grouped @ k.mT * size**-0.5, -1) @ v).flatten(1, 2)

    together = torch.compile(attend)
    yield Case(
        f"block_sparse_attention T{requests} {chosen} of {pages} blocks",
        lambda: ascend_kernels.block_sparse_attention(query, key, value, table, own, lengths, blocks, page)[0],
        lambda: attend(query[:4].double(), key.double(), value.double()),
        "matmul",
        2 * requests * kv_heads * chosen * page * size * 2,
        {"torch.compile": lambda: together(query, key, value)},
        rows=4,
    )
