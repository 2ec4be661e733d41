# SPDX-License-Identifier: Apache-2.0
"""What npu_fused_infer_attention_score refuses, each message naming operator, argument, given and allowed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from .fia_cases import COMPRESSED, Batch

fia = torch.ops.npu.npu_fused_infer_attention_score


def packed(batch: Batch | None = None, **changes: Any) -> dict[str, Any]:
    batch = batch or Batch([2, 3], [2, 3])
    tensors, lists = batch.packed()
    return {**tensors, **lists, **batch.common(), "input_layout": "TND", **changes}


def paged(block_size: int = 16, batch: Batch | None = None, **changes: Any) -> dict[str, Any]:
    batch = batch or Batch([1, 1], [5, 20])
    caches, table = batch.pages(block_size)
    options = {"block_table": table, "block_size": block_size, "actual_seq_lengths_kv": batch.keys}
    query = {"query": torch.cat(batch.query), "actual_seq_lengths": packed(batch)["actual_seq_lengths"]}
    return {**query, **caches, **batch.common(), "input_layout": "TND", **options, **changes}


def padded(batch: Batch | None = None, **changes: Any) -> dict[str, Any]:
    batch = batch or Batch([3, 3], [4, 4])
    tensors, _ = batch.padded("BSND")
    return {**tensors, **batch.common(), "input_layout": "BSND", **changes}


FLOAT32 = Batch([2], [2], dtype=torch.float32)
REFUSALS = {
    "float32": (
        packed(FLOAT32),
        r"query is float32; the hardware allows bfloat16, float16, int8. Set ASCEND_SIM_ORACLE",
    ),
    "mixed dtypes": (
        packed(key=torch.zeros(5, 2, 64).bfloat16(), value=torch.zeros(5, 2, 64).bfloat16()),
        "key.dtype is",
    ),
    "mask dtype": (
        packed(sparse_mode=3, atten_mask=COMPRESSED.half()),
        "atten_mask is float16; the hardware allows bool",
    ),
    "table dtype": (paged(block_table=torch.zeros(2, 3).long()), "block_table is int64; the hardware allows int32"),
    "layout": (packed(input_layout="TDN"), "input_layout is 'TDN'; the hardware allows BSH, BSND"),
    "sum": (
        packed(actual_seq_lengths=[2, 4]),
        r"actual_seq_lengths\[-1\] is 4; the hardware allows 5, the number of packed",
    ),
    "falling sums": (
        packed(actual_seq_lengths=[6, 5]),
        "actual_seq_lengths is .*; the hardware allows a non-empty list of sums",
    ),
    "no list": (packed(actual_seq_lengths=None), "actual_seq_lengths is None; the hardware allows a list of sums"),
    "key sums": (packed(actual_seq_lengths_kv=[2, 4]), r"actual_seq_lengths_kv\[-1\] is 4; the hardware allows 5"),
    "key list length": (
        paged(actual_seq_lengths_kv=[5]),
        r"len\(actual_seq_lengths_kv\) is 1; the hardware allows 2",
    ),
    "no key list": (paged(actual_seq_lengths_kv=None), "actual_seq_lengths_kv is None; .* with a block_table"),
    "head count": (packed(num_heads=3), "num_heads is 3; the hardware allows query.shape|num_key_value_heads is 2"),
    "key head count": (
        packed(num_key_value_heads=4),
        r"num_key_value_heads is 4; the hardware allows key.shape\[1\] = 2",
    ),
    "group": (
        packed(Batch([2], [2], heads=(130, 2))),
        "num_key_value_heads is 2; the hardware allows divisors of 130",
    ),
    "MHA head size": (
        packed(Batch([2], [2], (2, 2), (16, 16))),
        r"head sizes of query and value in layout TND is \[16, 16\]",
    ),
    "GQA head size": (
        packed(Batch([2], [2], size=(272, 272))),
        r"head sizes of query and value in layout TND is \[272, 272\]",
    ),
    "odd head size": (
        padded(Batch([3], [4], size=(40, 40))),
        "head size is 40; the hardware allows multiples of 16",
    ),
    "big head size": (
        padded(Batch([3], [4], size=(528, 528))),
        "head size is 528; the hardware allows at most 512",
    ),
    "block multiple": (paged(24), "block_size is 24; the hardware allows multiples of 16 up to 1024"),
    "big block": (paged(2048), "block_size is 2048; the hardware allows multiples of 16 up to 1024"),
    "block argument": (
        paged() | {"block_size": 32},
        r"key.shape is \[\d+, 16, 128\]; the hardware allows \[blocks, 32, heads",
    ),
    "other value cache": (
        paged() | {"value": torch.zeros(2, 16, 128).half()},
        r"value.shape is \[2, 16, 128\]; the hardware allows that of key",
    ),
    "table rows": (
        paged(block_table=torch.zeros(3, 4, dtype=torch.int32)),
        r"block_table.shape is \[3, 4\]; .* \[2, at least 2",
    ),
    "table width": (
        paged(block_table=torch.zeros(2, 1, dtype=torch.int32)),
        "actual_seq_lengths_kv is .* lengths in|block_table.shape",
    ),
    "block number": (
        paged(block_table=torch.full((2, 2), 99, dtype=torch.int32)),
        r"block_table\[0\]\[0\] is 99; the hardware allows blocks 0",
    ),
    "full mask packed": (packed(atten_mask=COMPRESSED), "sparse_mode in layout TND is 0 with an atten_mask"),
    "mode 2 packed": (packed(sparse_mode=2, atten_mask=COMPRESSED), "sparse_mode in layout TND is 2"),
    "no mask": (packed(sparse_mode=3), r"atten_mask is None; the hardware allows \[2048, 2048\]"),
    "small mask": (
        packed(sparse_mode=3, atten_mask=COMPRESSED[:8, :8].contiguous()),
        r"atten_mask.shape is \[8, 8\]",
    ),
    "inverted mask": (
        packed(sparse_mode=3, atten_mask=~COMPRESSED),
        "atten_mask is of other values; .* ones above the diagonal",
    ),
    "mode": (padded(sparse_mode=5), "sparse_mode is 5; the hardware allows 0, 1, 2, 3, 4"),
    "mask size": (
        padded(atten_mask=torch.zeros(2, 1, 3, 3).bool()),
        r"atten_mask.shape is \[2, 1, 3, 3\]; .* at least \[2 or 1",
    ),
    "mode 1 without mask": (
        padded(sparse_mode=1),
        "atten_mask is None; the hardware allows a mask for sparse_mode 1",
    ),
    "long length": (
        padded(actual_seq_lengths_kv=[5, 4]),
        r"actual_seq_lengths_kv is \[5, 4\]; .* lengths in \[0, 4\]",
    ),
    "few lengths": (
        padded(Batch([3] * 3, [4] * 3), actual_seq_lengths=[3, 3]),
        r"len\(actual_seq_lengths\) is 2; .* 1, or 3",
    ),
    "bias packed": (
        packed(pse_shift=torch.zeros(1, 4, 3, 3).half()),
        "pse_shift is a tensor; .* None in layout TND",
    ),
    "offset of the result without scale": (
        packed(quant_offset2=torch.ones(1)),
        "quant_offset2 is a tensor; the hardware allows None without quant_scale2",
    ),
    "int8 query": (
        padded(query=padded()["query"].to(torch.int8)),
        "query.dtype is torch.int8; the hardware allows int8 with version 2 and its dequant_scale_query",
    ),
    "inner_precise": (packed(inner_precise=1), "inner_precise is 1; the hardware allows 0 in layout TND"),
    "strided": (packed(value=torch.zeros(5, 2, 128).half()[..., :64]), r"value.stride\(\) is .* Call .contiguous"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refuses(case: str) -> None:
    arguments, message = REFUSALS[case]
    with pytest.raises(RuntimeError, match=f"npu_fused_infer_attention_score: ({message})"):
        fia(**arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key_shared_prefix", torch.zeros(1, 1, 2, 64).half()),
        ("quant_scale1", torch.ones(1)),
        ("kv_padding_size", torch.ones(1)),
    ],
)
def test_what_no_reference_covers_says_so(name: str, value: torch.Tensor) -> None:
    with pytest.raises(NotImplementedError, match=f"npu_fused_infer_attention_score: {name}=given is not simulated"):
        fia(**padded(**{name: value}))


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        (torch.zeros(4), "learnable_sink is float32; the hardware allows bfloat16"),
        (torch.zeros(3).bfloat16(), r"learnable_sink.shape is \[3\]; the hardware allows \[4\]"),
    ],
)
def test_version_two_refuses_a_sink(sink: torch.Tensor, message: str) -> None:
    tensors, lists = Batch([2, 3], [2, 3], dtype=torch.bfloat16).packed()
    with pytest.raises(RuntimeError, match=message):
        torch.ops.npu.npu_fused_infer_attention_score_v2(
            **tensors, actual_seq_qlen=lists["actual_seq_lengths"], actual_seq_kvlen=lists["actual_seq_lengths_kv"],
            num_query_heads=4, num_key_value_heads=2, input_layout="TND", learnable_sink=sink,
        )  # fmt: skip
