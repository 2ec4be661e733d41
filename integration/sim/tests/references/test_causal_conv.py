# SPDX-License-Identifier: Apache-2.0
"""Causal convolution against the vendor's golden and the steps its page numbers, position by position in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ascend_sim.references import limits

from .calls import call
from .oracle import Array, as_float64, assert_close

SIZE = 128


@pytest.fixture(autouse=True)
def _ascend950() -> Iterator[None]:
    with limits.as_family(limits.Family.A5):
        yield


@pytest.mark.parametrize("masked", [False, True], ids=["no-mask", "mask"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_masked_causal_conv1d(dtype: torch.dtype, masked: bool) -> None:
    x, weight = torch.randn(5, 2, 64).to(dtype), torch.randn(3, 64).to(dtype)
    mask = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 1, 0, 0]]).bool() if masked else None
    out = call("npu::npu_masked_causal_conv1d", x, weight, mask=mask)
    values, kernel = as_float64(x), as_float64(weight)
    expected = np.zeros(values.shape)
    for s in range(5):
        for j in range(3):
            if s - 2 + j >= 0:
                expected[s] += kernel[j] * values[s - 2 + j]
        for b in range(2):
            if mask is not None and not mask[b, s]:
                expected[s, b] = 0
    assert_close(out, expected)


def page(
    part: Array, weight: Array, states: Array, lines: tuple[int, int], computed: int | None, accepted: int | None
) -> tuple[Array, Array]:
    """Steps 1 to 4 and 6 of the page for one sequence: its result, and ``x'``; updates states[lines[1]]."""
    size = states.shape[1]
    if computed == 0:
        offset, cached = 0, np.zeros((2, part.shape[1]))
    else:
        offset = size - 2 if accepted is None else accepted - 1
        cached = states[lines[0], : offset + 2].copy()
    padded = np.concatenate((cached, part))
    kept = min(size, len(padded))
    states[lines[1], size - kept :] = padded[len(padded) - kept :]
    used = padded[offset:]
    out = np.array([sum(weight[k] * used[i + k] for k in range(3)) for i in range(len(part))])
    return out, used


@pytest.mark.parametrize("residual", [0, 1])
@pytest.mark.parametrize(
    ("mode", "computed"),
    [("default", None), ("default", [0, 7, 1]), ("pangu", [0, 7, 1])],
    ids=["default-unknown", "default-computed", "pangu-computed"],
)
@pytest.mark.parametrize("accepted", [None, [1, 2, 1]], ids=["all", "accepted"])
def test_packed(accepted: list[int] | None, computed: list[int] | None, mode: str, residual: int) -> None:
    """Three sequences; the second line of the cache belongs to none, the third sequence is left out."""
    bounds, lines = [0, 4, 5, 7], [3, 0, -1]
    x, weight = torch.randn(7, SIZE).half(), torch.randn(3, SIZE).half()
    states = torch.randn(4, 4, SIZE).half()
    expected_states, expected = as_float64(states), np.zeros((7, SIZE))
    for i in range(2):
        rows = slice(bounds[i], bounds[i + 1])
        known, kept = None if computed is None else computed[i], None if accepted is None else accepted[i]
        out, _ = page(as_float64(x)[rows], as_float64(weight), expected_states, (lines[i],) * 2, known, kept)
        if mode == "pangu":
            out[: max(2 - (known or 0), 0)] = 0
        expected[rows] = out + (as_float64(x)[rows] if residual else 0)
    given: dict[str, Any] = {
        "query_start_loc": torch.tensor(bounds).int(), "cache_indices": torch.tensor(lines).int(),
        "num_accepted_tokens": None if accepted is None else torch.tensor(accepted).int(),
        "num_computed_tokens": None if computed is None else torch.tensor(computed).int(),
        "residual_connection": residual, "conv_mode": mode,
    }  # fmt: skip
    in_place, other = x.clone(), states.clone()
    out = call("npu::npu_fused_causal_conv1d", x, weight, states, **given)
    call("npu::npu_fused_causal_conv1d_v2", in_place, weight, other, **given)
    assert_close(out, expected, 4e-3)
    assert_close(states, expected_states, 0)
    assert torch.equal(in_place, out)
    assert torch.equal(other, states)


def test_padded_batch() -> None:
    x, weight, states = torch.randn(2, 3, SIZE).half(), torch.randn(3, SIZE).half(), torch.randn(2, 4, SIZE).half()
    expected_states = as_float64(states)
    expected = [page(as_float64(x)[i], as_float64(weight), expected_states, (i, i), None, None)[0] for i in range(2)]
    assert_close(call("npu::npu_fused_causal_conv1d", x, weight, states), np.stack(expected), 4e-3)
    assert_close(states, expected_states, 0)


def test_prefix_caching_fills_the_lines_of_full_blocks() -> None:
    """One sequence of 10 after 5, blocks of 4: tokens 5 to 14 lie in blocks 1 to 3, of which 1 and 2 become full.

    Block 1 ends after token 7, so its line keeps tokens 6 and 7 of the whole; block 2 keeps 10 and 11.
    """
    x, weight = torch.randn(10, SIZE).half(), torch.randn(3, SIZE).half()
    states = torch.randn(6, 2, SIZE).half()
    lines = [4, 1, 5, 2]
    expected_states = as_float64(states)
    expected, used = page(as_float64(x), as_float64(weight), expected_states, (lines[1], lines[3]), 5, None)
    whole = {5 - 2 + i: row for i, row in enumerate(used)}
    expected_states[lines[1]] = [whole[6], whole[7]]
    expected_states[lines[2]] = [whole[10], whole[11]]

    def one(value: int) -> Tensor:
        return torch.tensor([value]).int()

    out = call(
        "npu::npu_fused_causal_conv1d", x, weight, states, query_start_loc=torch.tensor([0, 10]).int(),
        cache_indices=torch.tensor([lines]).int(), num_computed_tokens=one(5), initial_state_idx=one(1),
        block_idx_first_scheduled_token=one(1), block_idx_last_scheduled_token=one(3), block_size=4,
    )  # fmt: skip
    assert_close(out, expected, 4e-3)
    assert_close(states, expected_states, 0)


def test_an_atlas_a2_has_no_causal_convolution() -> None:
    with limits.as_family(limits.Family.A2), pytest.raises(RuntimeError, match="SoC family is A2"):
        torch.ops.npu.npu_masked_causal_conv1d(torch.ones(1, 1, 64).half(), torch.ones(3, 64).half())
