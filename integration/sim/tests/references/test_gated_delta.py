# SPDX-License-Identifier: Apache-2.0
"""The gated delta rule, token by token in float64 as the vendor's golden does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from .calls import call
from .oracle import Array, as_float64, assert_close

NK, NV, DK, DV = 2, 4, 32, 16


def inputs(tokens: int) -> dict[str, Tensor]:
    """As the page's example draws them: unit queries and keys, decays below 0, strengths in (0, 1)."""
    q, k = (torch.nn.functional.normalize(torch.rand(tokens, NK, DK), dim=-1).bfloat16() for _ in range(2))
    v, beta = torch.rand(tokens, NV, DV).bfloat16(), torch.rand(tokens, NV).bfloat16()
    return {"query": q, "key": k, "value": v, "beta": beta, "g": -torch.rand(tokens, NV)}


def step(state: Array, given: dict[str, Array], token: int, scale: float) -> tuple[Array, Array]:
    """State [NV, DV, DK] after one token, and the token's output [NV, DV]."""
    after, out = np.empty_like(state), np.empty(state.shape[:2])
    for head in range(NV):
        q, k = (given[name][token, head * NK // NV] for name in ("query", "key"))
        s = state[head] * np.exp(given["g"][token, head])
        if "gk" in given:
            s = s * np.exp(given["gk"][token, head])
        s = s + given["beta"][token, head] * np.outer(given["value"][token, head] - s @ k, k)
        after[head], out[head] = s, s @ q * scale
    return after, out


@pytest.mark.parametrize("accepted", [None, [1, 3, 2]], ids=["first", "accepted"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("channels", [False, True], ids=["g", "gk"])
def test_recurrent(accepted: list[int] | None, dtype: torch.dtype, channels: bool) -> None:
    each, scale = [1, 4, 2], DK**-0.5
    given = inputs(sum(each))
    if channels:
        given["gk"] = -torch.rand(sum(each), NV, DK)
    before = torch.rand(9, NV, DV, DK).to(dtype)
    slots = [5, 2, 0, 7, 8, 1, 4]
    chosen = None if accepted is None else torch.tensor([1, *accepted[1:]]).int()
    arguments: dict[str, Any] = {
        **given, "scale": scale, "actual_seq_lengths": torch.tensor(each).int(),
        "ssm_state_indices": torch.tensor(slots).int(), "num_accepted_tokens": chosen,
    }  # fmt: skip
    state = before.clone()
    out = call("npu::npu_recurrent_gated_delta_rule", state=state, **arguments)
    again, after = call("npu::npu_recurrent_gated_delta_rule_functional", state=before, **arguments)
    exact, expected = {n: as_float64(t) for n, t in given.items()}, as_float64(before)
    rows, start = [], 0
    for i, length in enumerate(each):
        s = as_float64(before)[slots[start + (0 if chosen is None else int(chosen[i]) - 1)]]
        for token in range(start, start + length):
            s, o = step(s, exact, token, scale)
            expected[slots[token]] = s
            rows.append(o)
        start += length
    assert out.dtype == torch.bfloat16
    assert state.dtype == after.dtype == dtype
    assert_close(out, np.stack(rows))
    assert_close(state, expected)
    assert torch.equal(out, again)
    assert torch.equal(state, after)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("decays", [True, False], ids=["g", "no-g"])
def test_chunked(dtype: torch.dtype, decays: bool) -> None:
    """Lengths below, at and above the chunk of 64, and an empty sequence that keeps its state."""
    each, scale = [64, 3, 0, 150], DK**-0.5
    given = inputs(sum(each))
    if not decays:
        given["g"].zero_()
    initial = torch.rand(len(each), NV, DV, DK).to(dtype)
    arguments = {n: t for n, t in given.items() if decays or n != "g"}
    out, final = call(
        "npu::npu_chunk_gated_delta_rule", **arguments, initial_state=initial, scale=scale,
        actual_seq_lengths=torch.tensor(each).int(),
    )  # fmt: skip
    exact, rows, states, token = {n: as_float64(t) for n, t in given.items()}, [], [], 0
    for i, length in enumerate(each):
        s = as_float64(initial)[i]
        for _ in range(length):
            s, o = step(s, exact, token, scale)
            rows.append(o)
            token += 1
        states.append(s)
    assert_close(out, np.stack(rows))
    assert_close(final, np.stack(states), 2e-2 if dtype == torch.bfloat16 else 1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actual_seq_lengths": torch.tensor([9, 1]).int()}, "lengths from 1 to 8"),
        ({"actual_seq_lengths": torch.tensor([4, 4]).int()}, "lengths that sum to 10"),
        ({"ssm_state_indices": torch.full((10,), 12).int()}, "0 to 11"),
        ({"num_accepted_tokens": torch.tensor([6, 1]).int()}, "num_accepted_tokens"),
        ({"state": torch.zeros(12, NV, DK, DV).bfloat16()}, r"state.shape\[1:\]"),
        ({"value": torch.rand(10, 3, DV).bfloat16()}, "value heads is 3"),
        ({"g": torch.zeros(10, NV).bfloat16()}, "g is bfloat16; the hardware allows float32"),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_recurrent_refuses(changes: dict[str, Tensor], message: str) -> None:
    arguments = {
        **inputs(10), "state": torch.zeros(12, NV, DV, DK).bfloat16(), "ssm_state_indices": torch.arange(10).int(),
        "actual_seq_lengths": torch.tensor([5, 5]).int(),
    }  # fmt: skip
    torch.ops.npu.npu_recurrent_gated_delta_rule(**arguments)
    with pytest.raises(RuntimeError, match=message):
        torch.ops.npu.npu_recurrent_gated_delta_rule(**(arguments | changes))
