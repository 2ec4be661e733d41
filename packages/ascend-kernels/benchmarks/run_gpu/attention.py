"""Attention over pages and over packed sequences, against torch's fused attention on the same keys laid out."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.nn.functional import scaled_dot_product_attention

import ascend_kernels
from run_gpu.case import Case


def _bf16(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def _decode(requests: int, length: int, page: int) -> Case:
    heads, kv_heads, size = 32, 8, 128
    pages = length // page
    query = _bf16(requests, heads, size)
    key, value = (_bf16(requests * pages, page, kv_heads, size) for _ in range(2))
    table = torch.randperm(requests * pages, device="cuda").int().view(requests, pages)
    lengths = torch.full((requests,), length, device="cuda", dtype=torch.int32)
    # Batch, head, key, size; the same keys in order.
    keys, values = (cache[table.long()].flatten(1, 2).transpose(1, 2).contiguous() for cache in (key, value))

    def reference() -> torch.Tensor:
        grouped = query[:2].double().view(2, kv_heads, -1, size)
        weights = torch.softmax(grouped @ keys[:2].double().mT * size**-0.5, -1)
        return (weights @ values[:2].double()).flatten(1, 2)

    return Case(
        f"paged_decode_attention B{requests} T{length} page {page}",
        lambda: ascend_kernels.paged_decode_attention(query, key, value, table, lengths)[0],
        reference,
        "matmul",
        key.nbytes + value.nbytes,
        {"torch sdpa": lambda: scaled_dot_product_attention(query[:, :, None], keys, values, enable_gqa=True)},
        rows=min(2, requests),
    )


def _prefill(size: int, heads: int, kv_heads: int) -> Case:
    sequences, length = 4, 4096
    query, key, value = (_bf16(sequences * length, count, size) for count in (heads, kv_heads, kv_heads))
    starts = torch.arange(sequences + 1, device="cuda", dtype=torch.int32) * length
    packed = [tensor.view(sequences, length, -1, size).transpose(1, 2) for tensor in (query, key, value)]
    rows = 256

    def reference() -> torch.Tensor:
        q, k, v = (tensor[0, :, :rows].double() for tensor in packed)
        k, v = (tensor.repeat_interleave(heads // kv_heads, 0) for tensor in (k, v))
        seen = torch.ones(rows, rows, device="cuda", dtype=torch.bool).tril()
        scores = (q @ k.mT * size**-0.5).masked_fill(~seen, float("-inf"))
        return (torch.softmax(scores, -1) @ v).transpose(0, 1)

    return Case(
        f"varlen_attention 4x{length} H{heads} D{size} causal",
        lambda: ascend_kernels.varlen_attention(query, key, value, starts)[0],
        reference,
        "matmul",
        0,
        {"torch sdpa": lambda: scaled_dot_product_attention(*packed, is_causal=True, enable_gqa=True)},
        rows=rows,
    )


def cases() -> Iterator[Case]:
    yield _decode(64, 8192, 128)
    yield _decode(64, 8192, 16)
    yield _decode(2, 65536, 128)
    yield _prefill(128, 32, 8)
    yield _prefill(80, 16, 16)
