# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ascend_sim.references import limits

from ..calls import call
from ..oracle import as_float64, assert_close
from ..quant.steps import int4_of

GMM = "npu::npu_grouped_matmul"
E, M, K, N = 3, 7, 16, 8
ENDS, COUNTS = [2, 2, 6], [2, 0, 4]
ROWS = [0, 0, 2, 2, 2, 2]
"""The group of each row; the seventh has none."""


def lists(kind: int) -> torch.Tensor:
    values = {0: ENDS, 1: COUNTS, 2: [[0, 2], [2, 4], [0, 0]]}[kind]
    return torch.tensor(values)


def int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def packed(*shape: int) -> tuple[torch.Tensor, np.ndarray]:
    """int4 weights packed along the last dimension, and their values."""
    words = torch.randint(-(2**31), 2**31, (*shape[:-1], shape[-1] // 8), dtype=torch.int64).int()
    return words, int4_of(words).astype(float)


def grouped(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.stack([row @ w[group] for row, group in zip(x, ROWS, strict=False)])


@pytest.mark.parametrize("kind", [0, 1, 2])
@pytest.mark.parametrize("several", [False, True], ids=["one", "list"])
def test_rows_times_their_groups_weight(kind: int, several: bool) -> None:
    x, w, bias = torch.randn(M, K).half(), torch.randn(E, K, N).half(), torch.randn(E, N).half()
    weight = [item.clone() for item in w] if several else [w]
    biases = [item.clone() for item in bias] if several else [bias]
    options = {"group_list": lists(kind), "group_list_type": kind, "split_item": 3, "group_type": 0}
    (plain,) = call(GMM, [x], weight, **options)
    expected = grouped(as_float64(x), as_float64(w))
    assert_close(plain[:6], expected, 1e-2)
    assert plain[6:].isnan().all()
    (out,) = call(GMM, [x], weight, bias=biases, **options)
    assert_close(out[:6], expected + as_float64(bias)[ROWS], 1e-2)


def test_transposed_weights() -> None:
    x, w = torch.randn(M, K).bfloat16(), torch.randn(E, N, K).bfloat16()
    (out,) = call(GMM, [x], [w.transpose(1, 2)], group_list=lists(0), split_item=3, group_type=0)
    assert_close(out[:6], grouped(as_float64(x), as_float64(w).transpose(0, 2, 1)), 5e-2)


@pytest.mark.parametrize("split", [0, 3])
def test_several_x_have_a_weight_each(split: int) -> None:
    x = [torch.randn(rows, K) for rows in (2, 3)]
    w = [torch.randn(K, N) for _ in range(2)]
    out = call(GMM, x, w, split_item=split, group_type=-1)
    expected = [as_float64(a) @ as_float64(b) for a, b in zip(x, w, strict=True)]
    if split == 3:
        expected = [np.concatenate(expected)]
    for found, wanted in zip(out, expected, strict=True):
        assert_close(found, wanted)


def test_groups_of_the_reduced_axis() -> None:
    """group_type 2: columns of x (transposed) and rows of the weight; a group without any gives zeros."""
    x, w = torch.randn(6, 4), torch.randn(6, N)
    (out,) = call(GMM, [x.t()], [w], group_list=lists(0), split_item=3, group_type=2)
    parts = [as_float64(x)[:2], np.zeros((0, 4)), as_float64(x)[2:]]
    weights = [as_float64(w)[:2], np.zeros((0, N)), as_float64(w)[2:]]
    assert_close(out, np.stack([a.T @ b for a, b in zip(parts, weights, strict=True)]))


def test_list_overload_splits_the_result_by_group() -> None:
    x, w = torch.randn(6, K), [torch.randn(K, N) for _ in range(E)]
    out = torch.ops.npu.npu_grouped_matmul.List([x], w, group_list=ENDS, split_item=1)
    assert [len(part) for part in out] == COUNTS
    assert_close(torch.cat(list(out)), grouped(as_float64(x), as_float64(torch.stack(w))))
    (whole,) = call(f"{GMM}.List", [x], w, group_list=ENDS, split_item=3)
    assert torch.equal(whole, torch.cat(list(out)))


@pytest.mark.parametrize("number", [5, 15])
@pytest.mark.parametrize("integer", [True, False], ids=["int32-bias", "float-bias"])
def test_int8_by_token_and_channel(number: int, integer: bool) -> None:
    x, w, scale, token = int8(M, K), int8(E, K, N), torch.rand(E, N) * 1e-3, torch.rand(M)
    bias = torch.randint(-900, 900, (E, N), dtype=torch.int32) if integer else torch.randn(E, N).bfloat16()
    (out,) = call(
        GMM,
        [x],
        [w],
        scale=[scale],
        per_token_scale=[token],
        bias=[bias],
        group_list=lists(1),
        group_list_type=1,
        split_item=3,
        group_type=0,
        output_dtype=number,
    )
    total, shift = grouped(as_float64(x), as_float64(w)), as_float64(bias)[ROWS]
    factor = as_float64(scale)[ROWS] * as_float64(token)[:6, None]
    assert_close(out[:6], (total + shift) * factor if integer else total * factor + shift)


def test_int8_without_scales_is_exact() -> None:
    x, w = int8(6, 3000), int8(E, 3000, N)
    (out,) = call(GMM, [x], [w], group_list=lists(0), split_item=3, group_type=0, output_dtype=3)
    assert out.dtype == torch.int32
    assert np.array_equal(out.numpy(), grouped(as_float64(x), as_float64(w)))


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("four", [False, True], ids=["int8", "int4"])
def test_weights_that_are_dequantised(groups: int, four: bool) -> None:
    """(w + offset) * scale, with parameters by channel or by group of K."""
    x = torch.randn(M, K).half()
    w, values = packed(E, K, N) if four else (int8(E, K, N), None)
    values = as_float64(w) if values is None else values
    shape = (E, N) if groups == 1 else (E, groups, N)
    scale, offset = torch.rand(shape).half() * 0.1, torch.randint(-4, 4, shape).half()
    (out,) = call(
        GMM,
        [x],
        [w],
        antiquant_scale=[scale],
        antiquant_offset=[offset],
        group_list=lists(0),
        split_item=3,
        group_type=0,
    )
    size = K // groups
    s, o = (np.repeat(as_float64(p).reshape(E, groups, N), size, 1) for p in (scale, offset))
    assert_close(out[:6], grouped(as_float64(x), (values + o) * s), 2e-2)


@pytest.mark.parametrize("groups", [1, 2])
def test_int8_by_int4_with_its_bias_is_the_plain_product(groups: int) -> None:
    """The bias that the page prescribes, 8 times the sum of the scaled weights, cancels the hardware's shift by 8."""
    x, token = int8(M, K), torch.rand(M)
    w, values = packed(E, K, N)
    scale = torch.rand(E, groups, N) * 1e-2
    by_row = np.repeat(as_float64(scale), K // groups, 1)
    bias = torch.tensor(8 * (values * by_row).sum(1)).float()
    (out,) = call(
        GMM,
        [x],
        [w],
        scale=[scale.view(torch.int32).long()],
        bias=[bias],
        per_token_scale=[token],
        group_list=lists(0),
        split_item=3,
        group_type=0,
        output_dtype=15,
    )
    expected = grouped(as_float64(x), values * by_row) * as_float64(token)[:6, None]
    assert_close(out[:6], expected, 1.6e-2)


@pytest.mark.parametrize(
    ("number", "function"),
    [
        (1, lambda v: np.maximum(v, 0)),
        (2, lambda v: v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3)))),
        (4, lambda v: v / (1 + np.exp(-1.702 * v))),
        (5, lambda v: v / (1 + np.exp(-v))),
    ],
)
def test_activations(number: int, function: object) -> None:
    x, w = torch.randn(M, K), torch.randn(E, K, N)
    (out,) = call(GMM, [x], [w], group_list=lists(0), split_item=3, group_type=0, act_type=number)
    assert_close(out[:6], function(grouped(as_float64(x), as_float64(w))), 1e-4)  # type: ignore[operator]


@limits.as_family(limits.Family.A5)
def test_microscaled_operands() -> None:
    """The product of what the elements and scales stand for; scales of the weight are [E, K / 64, N, 2]."""
    x, w = torch.randn(M, 128).bfloat16(), torch.randn(E, 128, N).bfloat16()
    x8, x_scale = torch.ops.npu.npu_dynamic_mx_quant(x, dst_type=24)
    w8, w_scale = torch.ops.npu.npu_dynamic_mx_quant(w, axis=1, dst_type=24)
    (out,) = call(
        GMM,
        [x8],
        [w8],
        scale=[w_scale],
        per_token_scale=[x_scale],
        group_list=lists(0),
        split_item=3,
        group_type=0,
        output_dtype=6,
        scale_dtype=293,
        per_token_scale_dtype=293,
    )
    back_x = torch.ops.npu.npu_anti_mx_quant(x8, x_scale, dst_type=6, src_type=292)
    back_w = torch.ops.npu.npu_anti_mx_quant(w8, w_scale, axis=1, dst_type=6, src_type=292)
    assert_close(out[:6], grouped(as_float64(back_x), as_float64(back_w)), 1e-4)


def test_groups_beyond_the_rows_are_refused() -> None:
    with pytest.raises(RuntimeError, match="group_list"):
        torch.ops.npu.npu_grouped_matmul(
            [torch.randn(4, K)], [torch.randn(E, K, N)], group_list=lists(0), split_item=3, group_type=0
        )
