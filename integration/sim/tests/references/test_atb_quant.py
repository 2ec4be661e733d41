# SPDX-License-Identifier: Apache-2.0
"""Paged attention of the Ascend Transformer Boost library in int8, against the golden of the vendor's test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from .calls import call
from .fia_cases import Batch
from .oracle import as_float64, assert_close
from .test_atb_attention import caches

NAME = "atb::_npu_paged_attention_quant"
NUMBERS = {torch.float16: 1, torch.bfloat16: 27}


def integers(batch: Batch) -> Batch:
    """The batch with values of int8, in its floating-point dtype."""
    for name in ("query", "key", "value"):
        setattr(batch, name, [t.clamp(-2, 2).mul(20).round() for t in getattr(batch, name)])
    return batch


def expected(batch: Batch, key_scale: np.ndarray, value_scale: np.ndarray, scale: float) -> np.ndarray:
    """ref_masked_attention with softmax_quant_numpy over a whole row."""
    out = []
    for tensors in zip(batch.query, batch.key, batch.value, strict=True):
        query, key, value = map(as_float64, tensors)
        rows = []
        for head in range(query.shape[1]):
            group = head * key.shape[1] // query.shape[1]
            scores = key[:, group] @ query[0, head] * key_scale[head] * scale
            weights = np.exp((scores - scores.max()).astype(np.float32))
            steps = np.rint((weights / np.float32(1 / 127)).astype(np.float16))
            rows.append(steps.astype(float) @ value[:, group] * value_scale[head] / 127 / weights.sum())
        out.append(rows)
    return np.array(out)


def arguments(batch: Batch, dtype: torch.dtype) -> tuple[Any, ...]:
    (key, value), table = caches(batch, 16)
    lengths = torch.tensor(batch.keys, dtype=torch.int32)
    scales = torch.rand(8) * 0.02, torch.rand(8) + 0.5
    parts = [t.nan_to_num().to(torch.int8) for t in (torch.cat(batch.query), key, value)]
    out = torch.zeros(len(batch.keys), 8, 64).to(dtype)
    return *parts, batch.heads[1], 8, 0.125, table, lengths, 3, NUMBERS[dtype], *scales, out


@pytest.mark.parametrize("heads", [1, 2, 8])
@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_paged_attention_quant(dtype: torch.dtype, heads: int) -> None:
    batch = integers(Batch([1, 1, 1], [40, 7, 17], heads=(8, heads)))
    given = arguments(batch, dtype)
    call(NAME, *given)
    wanted = expected(batch, given[10].double().numpy(), given[11].double().numpy(), 0.125)
    assert_close(given[-1] / 40, wanted / 40, 2e-3 if dtype == torch.float16 else 1e-2)


@pytest.mark.parametrize(("position", "value", "message"), [(8, 0, "quant_type"), (9, 1, "outdata_type is 1")])
def test_paged_attention_quant_refuses(position: int, value: int, message: str) -> None:
    given = list(arguments(integers(Batch([1], [7], heads=(8, 2))), torch.bfloat16))
    given[position] = value
    with pytest.raises(RuntimeError, match=message):
        torch.ops.atb._npu_paged_attention_quant(*given)
