# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
import torch

from ..calls import call
from ..oracle import Array, as_float64, assert_close


def softmax(x: Array) -> Array:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


NORMS = {0: softmax, 1: lambda x: 1 / (1 + np.exp(-x)), 2: lambda x: np.sqrt(np.logaddexp(0, x))}


def gating(
    x: Array, bias: Array | None, k: int, norm: int, groups: int, kept: int, mode: int, renorm: bool
) -> tuple[Array, Array]:
    """The steps of the vendor's page, token by token."""
    scores = NORMS[norm](x)
    weights, experts = np.zeros((len(x), k)), np.zeros((len(x), k), dtype=int)
    for token, row in enumerate(scores):
        values = row + (0 if bias is None else bias)
        by_group = values.reshape(groups, -1)
        group_score = by_group.max(-1) if mode == 0 else np.sort(by_group, -1)[:, -2:].sum(-1)
        best = np.argsort(-group_score, kind="stable")[:kept]
        masked = np.full_like(by_group, -np.inf)
        masked[best] = by_group[best]
        experts[token] = np.argsort(-masked.ravel(), kind="stable")[:k]
        weights[token] = row[experts[token]]
        if norm or renorm:
            weights[token] /= weights[token].sum() + 1e-20
    return weights, experts


CASES = {
    "softmax": {"norm_type": 0},
    "softmax-renorm": {"norm_type": 0, "renorm": 1},
    "sigmoid-bias-groups-top2": {"norm_type": 1, "group_count": 4, "k_group": 2, "group_select_mode": 1},
    "sqrt-softplus-bias-groups-max": {"norm_type": 2, "group_count": 4, "k_group": 2},
}


@pytest.mark.parametrize("name", CASES)
def test_gating(name: str) -> None:
    options = CASES[name]
    x = torch.randn(9, 32)
    bias = torch.randn(32) if "bias" in name else None
    weights, experts, norm = call(
        "npu::npu_moe_gating_top_k", x, 4, bias=bias, out_flag=True, routed_scaling_factor=2.5, **options
    )
    expected = gating(
        as_float64(x),
        None if bias is None else as_float64(bias),
        4,
        options["norm_type"],
        options.get("group_count", 1),
        options.get("k_group", 1),
        options.get("group_select_mode", 0),
        bool(options.get("renorm")),
    )
    assert np.array_equal(experts.numpy(), expected[1])
    assert_close(weights, expected[0] * 2.5)
    assert_close(norm, NORMS[options["norm_type"]](as_float64(x)))


def test_gating_by_token_table() -> None:
    """With input_ids the experts come from tid2eid; their weights from the scores."""
    x, table = torch.randn(3, 8).bfloat16(), torch.tensor([[7, 0], [1, 2], [3, 5]], dtype=torch.int32)
    ids = torch.tensor([2, 0, 2])
    weights, experts, _ = call("npu::npu_moe_gating_top_k", x, 2, input_ids=ids, tid2eid=table, norm_type=1)
    assert experts.tolist() == [[3, 5], [7, 0], [3, 5]]
    scores = np.take_along_axis(NORMS[1](as_float64(x)), experts.numpy(), -1)
    assert_close(weights, scores / scores.sum(-1, keepdims=True))


def test_equal_scores_take_the_lower_experts() -> None:
    _, experts, _ = call("npu::npu_moe_gating_top_k", torch.zeros(2, 64), 3, norm_type=1)
    assert experts.tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 9}, "k is 9; the hardware allows 1 to 8"),
        ({"k": 5, "group_count": 2}, "k is 5; the hardware allows 1 to 4"),
        ({"k": 1, "group_count": 3}, "group_count is 3; the hardware allows divisors of 8"),
        ({"k": 1, "group_count": 2, "k_group": 3}, "k_group is 3; the hardware allows 1 to group_count"),
        ({"k": 1, "norm_type": 3}, "norm_type is 3; the hardware allows 0"),
        (
            {"k": 1, "input_ids": torch.zeros(1, dtype=torch.int32)},
            "one of the two; the hardware allows both or neither",
        ),
    ],
    ids=["k", "k-in-groups", "groups", "kept-groups", "norm", "ids-without-table"],
)
def test_gating_refuses(options: dict[str, object], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        torch.ops.npu.npu_moe_gating_top_k(torch.randn(1, 8), **options)


@pytest.mark.parametrize("shape", [(6, 10), (2, 3, 10)], ids=["2d", "3d"])
def test_softmax_gating(shape: tuple[int, ...]) -> None:
    """Finished rows choose expert 10; row_idx counts column by column."""
    x = torch.randn(shape).half()
    finished = torch.arange(6).reshape(shape[:-1]) % 3 == 1
    y, experts, row_idx = call("npu::npu_moe_gating_top_k_softmax", x, finished, 4)
    scores = softmax(as_float64(x))
    order = np.argsort(-scores, -1, kind="stable")[..., :4]
    assert_close(y, np.take_along_axis(scores, order, -1))
    assert np.array_equal(experts.numpy(), np.where(finished.numpy()[..., None], 10, order))
    assert np.array_equal(row_idx.numpy().reshape(6, 4), np.arange(24).reshape(4, 6).T)


@pytest.mark.parametrize("renorm", [0, 1])
def test_softmax_gating_v2(renorm: int) -> None:
    x = torch.randn(5, 12)
    y, experts, softmaxed = call("npu::npu_moe_gating_top_k_softmax_v2", x, k=3, renorm=renorm, output_softmax=True)
    logits = as_float64(x)
    order = np.argsort(-logits, -1, kind="stable")[:, :3]
    assert np.array_equal(experts.numpy(), order)
    chosen = np.take_along_axis(logits if renorm else softmax(logits), order, -1)
    assert_close(y, softmax(chosen) if renorm else chosen)
    if renorm:
        assert softmaxed.numel() == 0
    else:
        assert_close(softmaxed, softmax(logits))


def test_group_topk_zeroes_the_weaker_groups() -> None:
    """Groups by the sum of their 2 largest: 0.9+0.1, 0.6+0.5, 0.4+0.3; the best 2 stay."""
    scores = torch.tensor([[0.9, 0.1, 0.0, 0.6, 0.5, 0.2, 0.4, 0.3, 0.3]], dtype=torch.float16)
    kept = scores.clone()
    kept[0, 6:] = 0
    torch.ops.atb._npu_group_topk(scores, k=2, group_num=3, n=2)
    assert torch.equal(scores, kept)
