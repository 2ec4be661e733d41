# SPDX-License-Identifier: Apache-2.0
"""npu_fused_infer_attention_score against the page's formula in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from .fia_cases import COMPRESSED, Batch, stack
from .oracle import assert_close

fia = torch.ops.npu.npu_fused_infer_attention_score
DTYPES = [torch.float16, torch.bfloat16]


def results(expected: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    return [out for out, _ in expected]


def sums(expected: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    return [lse for _, lse in expected]


@pytest.mark.parametrize("heads", [(4, 4), (4, 2), (4, 1)], ids=["MHA", "GQA", "MQA"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_packed_causal_prefill(dtype: torch.dtype, heads: tuple[int, int]) -> None:
    batch = Batch([5, 3, 1], [5, 3, 1], heads=heads, dtype=dtype)
    tensors, lists = batch.packed()
    out, lse = fia(
        **tensors,
        **lists,
        **batch.common(),
        input_layout="TND",
        sparse_mode=3,
        atten_mask=COMPRESSED,
        softmax_lse_flag=True,
    )
    expected = batch.expected(3)
    assert out.dtype == dtype
    assert_close(out, stack(results(expected)))
    assert_close(lse, stack(sums(expected))[..., None], 1e-3)


@pytest.mark.parametrize("block_size", [16, 48, 128])
@pytest.mark.parametrize("form", ["BnBsH", "BnNBsD", "NZ"])
def test_packed_paged_decode(form: str, block_size: int) -> None:
    """One query token a request; in pages the key list holds lengths, not sums."""
    batch = Batch([1] * 4, [1, 130, 17, 48], heads=(6, 2))
    caches, table = batch.pages(block_size, form)
    out, lse = fia(
        torch.cat(batch.query), **caches, **batch.common(), input_layout="TND", block_table=table,
        block_size=block_size, actual_seq_lengths=[1, 2, 3, 4], actual_seq_lengths_kv=batch.keys, softmax_lse_flag=True,
    )  # fmt: skip
    expected = batch.expected()
    assert_close(out, stack(results(expected)))
    assert_close(lse, stack(sums(expected))[..., None], 1e-3)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_packed_paged_mix_of_prefill_and_decode(dtype: torch.dtype) -> None:
    """Chunked prefill: new tokens see the cached ones and each other causally, counted from the lower right."""
    batch = Batch([1, 7, 1, 4, 7], [40, 7, 1, 30, 7], dtype=dtype)
    caches, table = batch.pages(16)
    out, _ = fia(
        torch.cat(batch.query), **caches, **batch.common(), input_layout="TND", block_table=table, block_size=16,
        actual_seq_lengths=np.cumsum(batch.queries).tolist(), actual_seq_lengths_kv=batch.keys,
        sparse_mode=3, atten_mask=COMPRESSED.to(torch.int8),
    )  # fmt: skip
    assert_close(out, stack(results(batch.expected(3))))


@pytest.mark.parametrize("window", [0, 1, 5, 100])
def test_packed_sliding_window(window: int) -> None:
    """sparse_mode 4: pre_tokens keys before the query's own position, counted from the lower right, inclusive."""
    batch = Batch([1, 6, 3], [20, 6, 11])
    caches, table = batch.pages(16)
    out, _ = fia(
        torch.cat(batch.query), **caches, **batch.common(), input_layout="TND", block_table=table, block_size=16,
        actual_seq_lengths=[1, 7, 10], actual_seq_lengths_kv=batch.keys,
        sparse_mode=4, pre_tokens=window, next_tokens=0, atten_mask=COMPRESSED,
    )  # fmt: skip
    assert_close(out, stack(results(batch.expected(4, window, 0))))


@pytest.mark.parametrize(
    ("queries", "keys"), [([2, 3], [0, 5]), ([1, 1], [0, 9]), ([1, 4], [0, 0])], ids=["prefill", "decode", "none"]
)
def test_a_request_without_keys_gives_zeros(queries: list[int], keys: list[int]) -> None:
    batch = Batch(queries, keys)
    caches, table = batch.pages(16)
    out, lse = fia(
        torch.cat(batch.query), **caches, **batch.common(), input_layout="TND", block_table=table, block_size=16,
        actual_seq_lengths=np.cumsum(queries).tolist(), actual_seq_lengths_kv=keys, softmax_lse_flag=True,
    )  # fmt: skip
    expected = batch.expected()
    assert_close(out, stack(results(expected)))
    assert_close(lse, stack(sums(expected))[..., None], 1e-3)


def test_padded_requests_of_a_graph_read_one_key() -> None:
    """A captured batch repeats a dummy request of one token and one key in block 0."""
    batch = Batch([1, 1, 1, 1], [33, 1, 1, 1])
    caches, table = batch.pages(16)
    table[1:, 0] = table[0, 0]
    batch.key[1:], batch.value[1:] = [batch.key[0][:1]] * 3, [batch.value[0][:1]] * 3
    out, _ = fia(
        torch.cat(batch.query), **caches, **batch.common(), input_layout="TND", block_table=table, block_size=16,
        actual_seq_lengths=[1, 2, 3, 4], actual_seq_lengths_kv=batch.keys, sparse_mode=3, atten_mask=COMPRESSED,
    )  # fmt: skip
    assert_close(out, stack(results(batch.expected(3))))


@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD"])
@pytest.mark.parametrize("mode", [0, 2, 3, 4])
def test_padded_layouts(layout: str, mode: int) -> None:
    """Rows past a request's length are neither read nor computed."""
    batch = Batch([4, 2], [6, 9])
    tensors, lists = batch.padded(layout, query_pad=1, key_pad=2)
    window = {"pre_tokens": 3, "next_tokens": 1} if mode == 4 else {}
    out, lse = fia(
        **tensors, **lists, **batch.common(), **window, input_layout=layout, sparse_mode=mode,
        atten_mask=None if mode == 0 else COMPRESSED, softmax_lse_flag=True,
    )  # fmt: skip
    expected = batch.expected(mode, 3, 1) if mode == 4 else batch.expected(mode)
    whole = stack(results(expected), 5)
    arranged = {"BSH": whole.reshape(2, 5, -1), "BSND": whole, "BNSD": whole.transpose(0, 2, 1, 3)}[layout]
    assert_close(out, arranged)
    for i, rows in enumerate(batch.queries):
        assert_close(lse[i, :, :rows, 0].float(), sums(expected)[i].T, 1e-3)
    assert lse.shape == (2, 4, 5, 1)


@pytest.mark.parametrize(
    ("layout", "axes"),
    [
        ("BNSD_BSND", (0, 1, 2, 3)),
        ("BSND_NBSD", (2, 0, 1, 3)),
        ("BNSD_NBSD", (2, 0, 1, 3)),
        ("BSND_BNSD", (0, 2, 1, 3)),
    ],
)
def test_layouts_that_transpose_the_result(layout: str, axes: tuple[int, ...]) -> None:
    batch = Batch([3, 3], [5, 5])
    tensors, _ = batch.padded(layout[:4])
    out, _ = fia(**tensors, **batch.common(), input_layout=layout)
    assert_close(out, stack(results(batch.expected()), 3).transpose(axes))


@pytest.mark.parametrize("layout", ["TND_NTD", "NTD_TND"])
def test_packed_layouts_that_transpose(layout: str) -> None:
    batch = Batch([3, 2], [3, 4])
    tensors, lists = batch.packed()
    expected = stack(results(batch.expected()))
    if layout == "NTD_TND":
        tensors = {name: t.transpose(0, 1).contiguous() for name, t in tensors.items()}
    else:
        expected = expected.transpose(1, 0, 2)
    out, _ = fia(**tensors, **lists, **batch.common(), input_layout=layout)
    assert_close(out, expected)


@pytest.mark.parametrize("shape", ["QK", "1QK", "BQK", "B1QK", "padded"])
@pytest.mark.parametrize("mode", [0, 1])
def test_full_masks(mode: int, shape: str) -> None:
    """Modes 0 and 1 take the whole matrix; 1 hides. Mode 0 also keeps to pre_tokens and next_tokens."""
    batch = Batch([5, 5], [7, 7])
    hidden = np.random.default_rng(0).random((2, 5, 7)) < 0.4
    hidden[..., 0] = False
    if shape in ("QK", "1QK"):
        hidden[1] = hidden[0]
    mask = torch.from_numpy(hidden)
    if shape == "padded":
        mask = torch.nn.functional.pad(mask, (0, 9, 0, 11), value=True)
    mask = {"QK": mask[0], "1QK": mask[:1], "B1QK": mask[:, None]}.get(shape, mask)
    tensors, _ = batch.padded("BSND")
    out, _ = fia(
        **tensors, **batch.common(), input_layout="BSND", sparse_mode=mode, atten_mask=mask, pre_tokens=4, next_tokens=4
    )
    assert_close(out, stack(results(batch.expected(mode, 4, 4, masks=list(hidden))), 5))


def test_decode_mask_per_request() -> None:
    """One query: the mask may be [B, keys]."""
    batch = Batch([1, 1, 1], [8, 8, 8])
    hidden = np.random.default_rng(1).random((3, 8)) < 0.5
    hidden[:, 0] = False
    tensors, _ = batch.padded("BNSD")
    out, _ = fia(**tensors, **batch.common(), input_layout="BNSD", atten_mask=torch.from_numpy(hidden))
    expected = stack(results(batch.expected(0, masks=[h[None] for h in hidden])), 1)
    assert_close(out, expected.transpose(0, 2, 1, 3))


def test_position_bias() -> None:
    batch = Batch([4, 4], [6, 6])
    bias = torch.randn(2, 4, 4, 6).half()
    tensors, _ = batch.padded("BSND")
    out, _ = fia(**tensors, **batch.common(), input_layout="BSND", pse_shift=bias)
    assert_close(out, stack(results(batch.expected(bias=list(bias.double().numpy()))), 4))


@pytest.mark.parametrize("size", [(192, 128), (128, 128), (64, 64), (80, 80), (256, 256)], ids=str)
def test_packed_head_sizes(size: tuple[int, int]) -> None:
    batch = Batch([3, 1], [3, 1], size=size, dtype=torch.bfloat16)
    tensors, lists = batch.packed()
    out, _ = fia(**tensors, **lists, **batch.common(), input_layout="TND")
    assert_close(out, stack(results(batch.expected())))


def test_rope_parts_extend_query_and_key() -> None:
    """MLA: scores are those of the concatenation of latent and rope parts."""
    batch = Batch([2, 1], [5, 3], heads=(32, 1), size=(576, 512), dtype=torch.bfloat16)
    whole, table = batch.pages(128, "BnNBsD")
    query = torch.cat(batch.query)
    parts = {
        "query": query[..., :512].contiguous(), "query_rope": query[..., 512:].contiguous(),
        "key": whole["key"][..., :512].contiguous(), "key_rope": whole["key"][..., 512:].contiguous(),
        "value": whole["value"],
    }  # fmt: skip
    out, _ = fia(
        **parts, **batch.common(), input_layout="TND", block_table=table, block_size=128,
        actual_seq_lengths=[2, 3], actual_seq_lengths_kv=batch.keys, sparse_mode=3, atten_mask=COMPRESSED,
    )  # fmt: skip
    assert_close(out, stack(results(batch.expected(3))))


@pytest.mark.parametrize("mode", [0, 1, 2, 3], ids=["per-channel", "per-token", "per-head", "per-token-head"])
@pytest.mark.parametrize("offset", [False, True], ids=["symmetric", "offset"])
def test_int8_keys_and_values(mode: int, offset: bool) -> None:
    batch = Batch([1, 1], [6, 6], heads=(4, 2))
    shape = {0: (2, 64), 1: (2, 6), 2: (2,), 3: (2, 2, 6)}[mode]
    stored = {n: torch.randint(-100, 100, (2, 2, 6, 64), dtype=torch.int8) for n in ("key", "value")}
    options = {"key_antiquant_mode": mode, "value_antiquant_mode": mode}
    for name, values in stored.items():
        scale, shift = torch.rand(shape) * 0.02, torch.randint(-5, 5, shape).float() * offset
        options[f"{name}_antiquant_scale"] = scale
        if offset:
            options[f"{name}_antiquant_offset"] = shift
        by_token = {
            0: lambda t: t[None, :, None],
            1: lambda t: t[:, None, :, None],
            2: lambda t: t[None, :, None, None],
        }
        spread = by_token.get(mode, lambda t: t[..., None])
        restored = (values.double() + spread(shift.double())) * spread(scale.double())
        getattr(batch, name)[:] = list(restored.transpose(1, 2))
    query = torch.stack(batch.query).transpose(1, 2).contiguous()
    out, _ = fia(query, **stored, **batch.common(), **options, input_layout="BNSD")
    assert_close(out, stack(results(batch.expected()), 1).transpose(0, 2, 1, 3), 4e-3)


def test_out_variant_writes_result_and_sums() -> None:
    batch = Batch([2, 3], [2, 3])
    tensors, lists = batch.packed()
    arguments = {**tensors, **lists, **batch.common(), "input_layout": "TND", "softmax_lse_flag": True}
    out, lse = torch.zeros(5, 4, 64).half(), torch.zeros(5, 4, 1)
    workspace = torch.ops.npu._npu_fused_infer_attention_score_get_max_workspace(**arguments)
    returned = fia.out(**arguments, workspace=workspace, out=[out, lse])
    expected = fia(**arguments)
    for actual, given, value in zip(returned, (out, lse), expected, strict=True):
        assert actual.data_ptr() == given.data_ptr()
        assert torch.equal(given, value)


@pytest.mark.parametrize("lse", [False, True], ids=["result", "with-lse"])
@pytest.mark.parametrize("layout", ["BSH", "BSND", "BNSD", "BNSD_BSND", "BSND_NBSD"])
def test_infer_output_has_the_results_shapes(layout: str, lse: bool) -> None:
    batch = Batch([3, 3], [5, 5])
    tensors, _ = batch.padded(layout.split("_")[0])
    options = {"input_layout": layout, "softmax_lse_flag": lse}
    real = fia(**tensors, **batch.common(), **options)
    empty = torch.ops.npu._npu_fused_infer_attention_score_infer_output(
        tensors["query"], tensors["value"], num_heads=4, num_key_value_heads=2, **options
    )
    assert [t.shape for t in empty] == [t.shape for t in real]


def test_version_two_with_a_learnable_sink() -> None:
    """The sink is one more logit per head that takes weight and gives no value."""
    batch = Batch([1, 5], [9, 5], dtype=torch.bfloat16)
    sink = torch.randn(4).bfloat16()
    caches, table = batch.pages(16)
    out, lse = torch.ops.npu.npu_fused_infer_attention_score_v2(
        torch.cat(batch.query), **caches, num_query_heads=4, num_key_value_heads=2, softmax_scale=batch.scale,
        input_layout="TND", block_table=table, block_size=16, actual_seq_qlen=[1, 6], actual_seq_kvlen=batch.keys,
        sparse_mode=3, atten_mask=COMPRESSED, learnable_sink=sink, return_softmax_lse=True,
    )  # fmt: skip
    expected = batch.expected(3, sink=sink.double().numpy())
    assert_close(out, stack(results(expected)))
    assert_close(lse, stack(sums(expected))[..., None], 1e-3)


def test_oracle_mode_computes_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SIM_ORACLE_FP32", "1")
    batch = Batch([4, 1], [4, 1], dtype=torch.float32)
    tensors, lists = batch.packed()
    out, _ = fia(**tensors, **lists, **batch.common(), input_layout="TND", sparse_mode=3, atten_mask=COMPRESSED)
    assert_close(out, stack(results(batch.expected(3))))


def test_long_queries_are_computed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    from ascend_sim.references.attention import core

    batch = Batch([9, 9], [9, 9])
    tensors, lists = batch.packed()
    arguments = {
        **tensors,
        **lists,
        **batch.common(),
        "input_layout": "TND",
        "sparse_mode": 3,
        "atten_mask": COMPRESSED,
    }
    whole = fia(**arguments)[0]
    monkeypatch.setattr(core, "_MAX_SCORES", 2 * 4 * 9 * 2)
    torch.testing.assert_close(fia(**arguments)[0], whole, rtol=1e-3, atol=1e-3)


def test_an_empty_query_gives_an_empty_result() -> None:
    """The page: an empty query is returned at once."""
    empty = torch.empty(0, 4, 64).half()
    key = torch.zeros(0, 2, 64).half()
    out, lse = fia(empty, key, key, num_heads=4, num_key_value_heads=2, input_layout="TND", actual_seq_lengths=[0])
    assert out.shape == empty.shape
    assert lse.numel() == 0
