# SPDX-License-Identifier: Apache-2.0
"""The lightning indexers and sparse attention against the procedures of the vendor's goldens, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .oracle import Array, as_float64, assert_close

LAYOUTS = [("TND", "PA_BSND"), ("BSND", "PA_BSND"), ("BSND", "BSND"), ("TND", "TND")]
QUERIES, KEYS = [2, 1, 3, 1], [40, 5, 3, 70]
"""The second and third request have fewer keys than are asked for; the third sees one, two and three."""


def arrange(parts: list[Tensor], layout: str, kind: str = "key", block: int = 16) -> tuple[Tensor, dict[str, Any]]:
    """Tokens of requests in a layout, with NaN (or the largest integer) where no token is, and its arguments."""
    lengths = [p.shape[0] for p in parts]
    suffix = {"key": "key", "kv": "kv", "query": "query"}[kind]
    name = f"actual_seq_lengths_{suffix}"
    if layout == "TND":
        return torch.cat(parts), {name: torch.tensor(lengths).cumsum(0).int()}
    unused = torch.nan if parts[0].is_floating_point() else 127
    if layout == "BSND":
        whole = torch.full((len(parts), max(lengths) + 1, *parts[0].shape[1:]), unused, dtype=parts[0].dtype)
        for i, part in enumerate(parts):
            whole[i, : lengths[i]] = part
        return whole, {name: torch.tensor(lengths).int()}
    width = -(-max(lengths) // block)
    cache = torch.full((len(parts) * width + 2, block, *parts[0].shape[1:]), unused, dtype=parts[0].dtype)
    table = torch.arange(len(parts) * width).flip(0).view(len(parts), width).int()
    for i, part in enumerate(parts):
        for t in range(lengths[i]):
            cache[table[i, t // block], t % block] = part[t]
    return cache, {name: torch.tensor(lengths).int(), "block_table": table}


def per_request(result: Tensor, layout: str) -> list[Tensor]:
    """Rows of each request, and a check that padding rows hold nothing new."""
    if layout == "TND":
        return list(result.split(QUERIES))
    return [result[i, :n] for i, n in enumerate(QUERIES)]


def expected_positions(scores: Array, count: int, mode: int) -> Array:
    """Positions by falling score for scores [S, K], -1 past the last seen."""
    rows, keys = scores.shape
    out = np.full((rows, count), -1)
    for i in range(rows):
        seen = keys if mode == 0 else max(0, keys - rows + i + 1)
        order = sorted(range(seen), key=lambda j: (-scores[i, j], j))[:count]
        out[i, : len(order)] = order
    return out


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_lightning_indexer(layouts: tuple[str, str], mode: int) -> None:
    heads, count = 4, 24
    q = [torch.randint(-3, 4, (n, heads, 128)).half() for n in QUERIES]
    k = [torch.randint(-3, 4, (n, 1, 128)).half() for n in KEYS]
    w = [torch.rand(n, heads).half() - 0.3 for n in QUERIES]
    query, lengths = arrange(q, layouts[0], "query")
    weights, _ = arrange(w, layouts[0], "query")
    key, rest = arrange(k, layouts[1])
    values = layouts[1] != "PA_BSND"
    options: dict[str, Any] = {
        "layout_query": layouts[0],
        "layout_key": layouts[1],
        "sparse_count": count,
        "sparse_mode": mode,
    }
    found, best = call(
        "npu::npu_lightning_indexer", query, key, weights, **lengths, **rest, **options, return_value=values
    )
    assert found.dtype == torch.int32
    for i, rows in enumerate(per_request(found, layouts[0])):
        products = np.einsum("shd,kd->shk", as_float64(q[i]), as_float64(k[i])[:, 0])
        scores = np.einsum("sh,shk->sk", as_float64(w[i]), np.maximum(products, 0))
        expected = expected_positions(scores, count, mode)
        # Positions may only differ where scores are equal but for rounding.
        chosen = np.take_along_axis(np.pad(scores, ((0, 0), (0, 1))), np.maximum(rows[:, 0].numpy(), 0), 1)
        wanted = np.take_along_axis(np.pad(scores, ((0, 0), (0, 1))), np.maximum(expected, 0), 1)
        assert ((rows[:, 0].numpy() < 0) == (expected < 0)).all()
        np.testing.assert_allclose(chosen, wanted, rtol=1e-5, atol=1e-3)
        if values:
            found_values = per_request(best, layouts[0])[i][:, 0]
            assert_close(found_values, np.where(expected < 0, -np.inf, wanted), 1e-3)


def test_lightning_indexer_keeps_the_order_of_equal_scores() -> None:
    found, _ = call(
        "npu::npu_lightning_indexer",
        *(torch.ones(1, 2, 1, 128).half(), torch.ones(1, 4, 1, 128).half(), torch.ones(1, 2, 1).half()),
        sparse_count=5,
    )
    assert found[0, :, 0].tolist() == [[0, 1, 2, -1, -1], [0, 1, 2, 3, -1]]


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_quant_lightning_indexer(layouts: tuple[str, str]) -> None:
    """The vendor's golden rounds weight * scale and product / 1024 to float16; both are followed here."""
    heads, count = 8, 24
    q = [torch.randint(-128, 128, (n, heads, 128)).to(torch.int8) for n in QUERIES]
    k = [torch.randint(-128, 128, (n, 1, 128)).to(torch.int8) for n in KEYS]
    w = [torch.rand(n, heads).mul(0.01).half() for n in QUERIES]
    q_scale = [torch.rand(n, heads).mul(10).half() for n in QUERIES]
    k_scale = [torch.rand(n, 1).mul(10).half() for n in KEYS]
    query, lengths = arrange(q, layouts[0], "query")
    key, rest = arrange(k, layouts[1])
    scales = (
        arrange(w, layouts[0], "query")[0],
        arrange(q_scale, layouts[0], "query")[0],
        arrange(k_scale, layouts[1])[0],
    )
    found = call(
        "npu::npu_quant_lightning_indexer", query, key, *scales, 0, 0, **lengths, **rest,
        layout_query=layouts[0], layout_key=layouts[1], sparse_count=count,
    )  # fmt: skip
    for i, rows in enumerate(per_request(found, layouts[0])):
        products = np.einsum("shd,kd->shk", q[i].numpy().astype(np.int64), k[i].numpy().astype(np.int64)[:, 0])
        rounded = (np.maximum(products, 0).astype(np.float32) / 1024).astype(np.float16).astype(np.float64)
        factor = (w[i].numpy() * q_scale[i].numpy()).astype(np.float64)
        scores = np.einsum("sh,shk->sk", factor, rounded) * as_float64(k_scale[i])[:, 0]
        expected = expected_positions(scores, count, 3)
        padded = np.pad(scores, ((0, 0), (0, 1)))
        chosen, wanted = (np.take_along_axis(padded, np.maximum(p, 0), 1) for p in (rows[:, 0].numpy(), expected))
        assert ((rows[:, 0].numpy() < 0) == (expected < 0)).all()
        np.testing.assert_allclose(chosen, wanted, rtol=1e-5)


def choose(keys: int, queries: int, block: int, count: int, mode: int) -> Tensor:
    """Blocks as the vendor's test picks them: any order, the last seen block among them, -1 at the end."""
    rows = torch.full((queries, 1, count), -1, dtype=torch.int32)
    for i in range(queries):
        seen = keys if mode == 0 else keys - queries + i + 1
        blocks = -(-seen // block)
        kept = min(blocks, count)
        rows[i, 0, : kept - 1] = torch.randperm(blocks - 1)[: kept - 1]
        rows[i, 0, kept - 1] = blocks - 1
    return rows


def sparse_oracle(
    query: Array,
    key: Array,
    value: Array,
    chosen: Array,
    block: int,
    scale: float,
    mode: int,
    sink: Array | None = None,
) -> tuple[Array, Array, Array]:
    """One request: query [S, N, D], key [K, D], value [K, Dv], chosen [S, K']; result, maximum and sum."""
    rows, heads, _ = query.shape
    out, top, total = np.zeros((rows, heads, value.shape[1])), np.zeros((rows, heads)), np.zeros((rows, heads))
    for i in range(rows):
        seen = len(key) if mode == 0 else len(key) - rows + i + 1
        columns = [j for b in chosen[i] if b >= 0 for j in range(int(b) * block, int(b + 1) * block) if j < seen]
        for h in range(heads):
            scores = key[columns] @ query[i, h] * scale
            logits = scores if sink is None else np.append(scores, sink[h])
            top[i, h] = logits.max()
            total[i, h] = np.exp(logits - top[i, h]).sum()
            out[i, h] = np.exp(scores - top[i, h]) @ value[columns] / total[i, h]
    return out, top, total


@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_sparse_flash_attention(layouts: tuple[str, str], mode: int, block: int) -> None:
    heads, count, scale = 4, 6, 576**-0.5
    q, q_rope = ([torch.randn(n, heads, d).bfloat16() for n in QUERIES] for d in (512, 64))
    k, k_rope = ([torch.randn(n, 1, d).bfloat16() for n in KEYS] for d in (512, 64))
    chosen = [choose(n, m, block, count, mode) for m, n in zip(QUERIES, KEYS, strict=True)]
    query, lengths = arrange(q, layouts[0], "query")
    key, rest = arrange(k, layouts[1], "kv")
    indices = arrange(chosen, layouts[0], "query")[0]
    lse = layouts[1] != "PA_BSND"
    out, top, total = call(
        "npu::npu_sparse_flash_attention", query, key, key, indices, scale, **lengths, **rest,
        query_rope=arrange(q_rope, layouts[0], "query")[0], key_rope=arrange(k_rope, layouts[1], "kv")[0],
        sparse_block_size=block, layout_query=layouts[0], layout_kv=layouts[1], sparse_mode=mode, attention_mode=2,
        return_softmax_lse=lse,
    )  # fmt: skip
    for i, rows in enumerate(per_request(out, layouts[0])):
        keys = as_float64(torch.cat((k[i], k_rope[i]), -1))[:, 0]
        queries = as_float64(torch.cat((q[i], q_rope[i]), -1))
        expected = sparse_oracle(queries, keys, keys[:, :512], chosen[i][:, 0].numpy(), block, scale, mode)
        assert_close(rows, expected[0])
        if lse:
            sums = [t[0] if layouts[0] == "TND" else t[:, 0] for t in (top, total)]
            for actual, wanted in zip(sums, expected[1:], strict=True):
                assert_close(per_request(actual, layouts[0])[i], wanted, 1e-4)


def test_sparse_flash_attention_with_a_sink_and_a_query_that_sees_nothing() -> None:
    """Two queries over one key in mode 3: the first sees none and gives zeros."""
    query, rope = torch.randn(2, 2, 512).half(), torch.randn(2, 2, 64).half()
    key, key_rope = torch.randn(1, 1, 512).half(), torch.randn(1, 1, 64).half()
    sink = torch.tensor([0.5, -1.0])
    out, top, total = call(
        "npu::npu_sparse_flash_attention", query, key, key, torch.tensor([[[-1]], [[0]]]).int(), 0.04,
        actual_seq_lengths_query=torch.tensor([2]).int(), actual_seq_lengths_kv=torch.tensor([1]).int(),
        query_rope=rope, key_rope=key_rope, layout_query="TND", layout_kv="TND", attention_mode=2,
        return_softmax_lse=True, sinks=sink, device=False,
    )  # fmt: skip
    keys = as_float64(torch.cat((key, key_rope), -1))[:, 0]
    queries = as_float64(torch.cat((query[1:], rope[1:]), -1))
    expected = sparse_oracle(queries, keys, keys[:, :512], np.array([[0]]), 1, 0.04, 3, as_float64(sink))
    assert not out[0].any()
    assert_close(out[1:], expected[0])
    assert_close(top[0, 1:], expected[1], 1e-4)
    assert_close(total[0, 1:], expected[2], 1e-4)
    assert torch.equal(top[0, 0], sink)
    assert torch.equal(total[0, 0], torch.ones(2))


def pack(latent: Tensor, scales: Tensor, rope: Tensor) -> Tensor:
    """Tokens [K, 1, 656] int8: 512 values, 64 rope elements of two bytes, 4 float32 scales."""
    parts = (latent, rope.contiguous().view(torch.int8), scales.contiguous().view(torch.int8))
    return torch.cat(parts, -1)[:, None]


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_kv_quant_sparse_flash_attention(layouts: tuple[str, str], dtype: torch.dtype) -> None:
    heads, count, scale = 2, 6, 576**-0.5
    q = [torch.randn(n, heads, 576).to(dtype) for n in QUERIES]
    latent = [torch.randint(-128, 128, (n, 512)).to(torch.int8) for n in KEYS]
    scales = [torch.rand(n, 4) / 64 for n in KEYS]
    rope = [torch.randn(n, 64).to(dtype) for n in KEYS]
    chosen = [choose(n, m, 1, count, 3) for m, n in zip(QUERIES, KEYS, strict=True)]
    query, lengths = arrange(q, layouts[0], "query")
    key, rest = arrange([pack(*t) for t in zip(latent, scales, rope, strict=True)], layouts[1], "kv")
    out = call(
        "npu::npu_kv_quant_sparse_flash_attention", query, key, key, arrange(chosen, layouts[0], "query")[0], scale,
        2, 2, **lengths, **rest, layout_query=layouts[0], layout_kv=layouts[1], attention_mode=2,
    )  # fmt: skip
    for i, rows in enumerate(per_request(out, layouts[0])):
        restored = (latent[i].float() * scales[i].repeat_interleave(128, -1)).to(dtype)
        keys = as_float64(torch.cat((restored, rope[i]), -1))
        expected = sparse_oracle(as_float64(q[i]), keys, keys[:, :512], chosen[i][:, 0].numpy(), 1, scale, 3)
        assert_close(rows, expected[0])


def indexer(**changes: Any) -> Any:
    given = {
        "query": torch.ones(1, 1, 1, 128).half(), "key": torch.ones(1, 16, 1, 128).half(),
        "weights": torch.ones(1, 1, 1).half(), "sparse_count": 16,
    }  # fmt: skip
    return torch.ops.npu.npu_lightning_indexer(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sparse_count": 2049}, "sparse_count is 2049"),
        ({"sparse_mode": 1}, "sparse_mode is 1; the hardware allows 0, 3"),
        ({"key": torch.ones(1, 16, 2, 128).half()}, "key heads is 2"),
        ({"query": torch.ones(1, 1, 65, 128).half()}, "query heads is 65"),
        ({"query": torch.ones(1, 1, 1, 64).half()}, r"query.shape\[-1\] is 64; the hardware allows 128"),
        ({"query": torch.ones(1, 1, 1, 128)}, "query is float32"),
        ({"layout_key": "PA_BSND"}, "block_table is None"),
        ({"layout_query": "TND"}, "layout_key is 'BSND'; the hardware allows that of the query"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_lightning_indexer_refuses(changes: dict[str, Any], message: str) -> None:
    assert indexer()[0].shape == (1, 1, 1, 16)
    with pytest.raises(RuntimeError, match=message):
        indexer(**changes)
