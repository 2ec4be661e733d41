"""Attention in float64 written out per token, and batches to try it on."""

from __future__ import annotations

from dataclasses import dataclass

import torch

BLOCK_SIZE = 128


@dataclass
class Batch:
    """A paged batch on the device, and the same keys and values per request on the host."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    cache: torch.Tensor
    block_table: torch.Tensor
    slots: torch.Tensor
    query_lens: list[int]
    kv_lens: list[int]
    keys: list[torch.Tensor]
    values: list[torch.Tensor]


def make_batch(
    query_lens: list[int], kv_lens: list[int], heads: int, kv_heads: int, size: int, dtype: torch.dtype, seed: int = 0
) -> Batch:
    """Requests of which the last ``query_lens[r]`` of ``kv_lens[r]`` tokens are new; pages are shuffled."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw).to(dtype)

    pages_each = [-(-length // BLOCK_SIZE) for length in kv_lens]
    order = torch.randperm(sum(pages_each), generator=draw).tolist()
    cache = torch.zeros(2, len(order) + 1, BLOCK_SIZE, kv_heads, size, dtype=dtype)
    table = torch.zeros(len(kv_lens), max(pages_each), dtype=torch.int32)
    keys, values, slots, new_keys, new_values = [], [], [], [], []
    for request, (new, length) in enumerate(zip(query_lens, kv_lens)):
        pages = [order.pop() + 1 for _ in range(pages_each[request])]
        table[request, : len(pages)] = torch.tensor(pages)
        key, value = normal(length, kv_heads, size), normal(length, kv_heads, size)
        keys.append(key)
        values.append(value)
        for token in range(length):
            slot = pages[token // BLOCK_SIZE] * BLOCK_SIZE + token % BLOCK_SIZE
            if token < length - new:
                cache[0].view(-1, kv_heads, size)[slot] = key[token]
                cache[1].view(-1, kv_heads, size)[slot] = value[token]
            else:
                slots.append(slot)
        new_keys.append(key[length - new :])
        new_values.append(value[length - new :])
    return Batch(
        normal(sum(query_lens), heads, size).npu(),
        torch.cat(new_keys).npu(),
        torch.cat(new_values).npu(),
        cache.npu(),
        table.npu(),
        torch.tensor(slots, dtype=torch.int32).npu(),
        query_lens,
        kv_lens,
        keys,
        values,
    )


def attention(
    batch: Batch, scale: float, window: int | None = None, sinks: torch.Tensor | None = None, causal: bool = True
) -> torch.Tensor:
    """Each query over the keys it may see; a window of ``w`` is the last ``w`` tokens, the query's own included."""
    query = batch.query.cpu().double()
    heads = query.shape[1]
    rows, start = [], 0
    for new, length, key, value in zip(batch.query_lens, batch.kv_lens, batch.keys, batch.values):
        repeat = heads // key.shape[1]
        key = key.double().repeat_interleave(repeat, 1)
        value = value.double().repeat_interleave(repeat, 1)
        for offset in range(new):
            last = length - new + offset if causal else length - 1
            first = 0 if window is None else max(0, last - window + 1)
            scores = scale * torch.einsum("hd,khd->hk", query[start + offset], key[first : last + 1])
            if sinks is not None:
                scores = torch.cat([scores, sinks.double()[:, None]], 1)
            weights = scores.softmax(-1)[:, : last + 1 - first]
            rows.append(torch.einsum("hk,khd->hd", weights, value[first : last + 1]))
        start += new
    return torch.stack(rows)
