# SPDX-License-Identifier: Apache-2.0
"""Gates by the Gaussian error linear unit, the feed-forward block and other activations. All compute in float32."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_doc


@reference(
    "npu::npu_geglu",
    source=f"{wheel_doc('npu_geglu')}; halves: {cann_doc('ops-nn', 'activation/ge_glu_v2/README.md')}",
    grade=Grade.DOCUMENTED,
)
def npu_geglu(input: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> tuple[Tensor, Tensor]:
    """(a * gelu(b), gelu(b)) of the halves a, b of ``input``, or with ``activate_left`` (gelu(a) * b, gelu(a))."""
    op = "npu_geglu"
    if input.shape[dim] % 2:
        raise limits.refuse(op, f"input.shape[{dim}]", input.shape[dim], "even sizes")
    if approximate not in (0, 1):
        raise limits.refuse(op, "approximate", approximate, "0 (erf), 1 (tanh)")
    left, right = input.float().chunk(2, dim)
    gate, other = (left, right) if activate_left else (right, left)
    gate = F.gelu(gate, approximate="tanh" if approximate else "none")
    return (other * gate).to(input.dtype), gate.to(input.dtype)


@reference("npu::npu_gelu_mul", source=wheel_doc("npu_gelu_mul"), grade=Grade.DOCUMENTED)
def npu_gelu_mul(input: Tensor, *, approximate: str = "none") -> Tensor:
    """``gelu(a) * b`` of the halves a, b of the last dimension."""
    if input.shape[-1] % 2:
        raise limits.refuse("npu_gelu_mul", "input.shape[-1]", input.shape[-1], "even sizes")
    left, right = input.float().chunk(2, -1)
    return (F.gelu(left, approximate=approximate) * right).to(input.dtype)


@reference("npu::npu_mish", source=wheel_doc("npu_mish"), grade=Grade.DOCUMENTED)
def npu_mish(input: Tensor) -> Tensor:
    """``x * tanh(ln(1 + exp(x)))``."""
    return F.mish(input.float()).to(input.dtype)


_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "fastgelu": lambda x: x * torch.sigmoid(1.702 * x),
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
}
_QUANTISED = ("scale", "offset", "deq_scale1", "deq_scale2")
_ANTIQUANTISED = ("antiquant_scale1", "antiquant_scale2", "antiquant_offset1", "antiquant_offset2")


@reference(
    "npu::npu_ffn",
    source=wheel_doc("npu_ffn"),
    grade=Grade.DOCUMENTED,
    note="fastgelu, gelu (by erf), relu and silu without quantisation; the page leaves open which half a glu activates",
)
def npu_ffn(
    x: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    activation: str,
    *,
    expert_tokens: list[int] | None = None,
    expert_tokens_index: list[int] | None = None,
    bias1: Tensor | None = None,
    bias2: Tensor | None = None,
    **given: Tensor | int | None,
) -> Tensor:
    """``activation(x w1 + b1) w2 + b2``, per expert over consecutive rows with a list of their counts or ends."""
    op = "npu_ffn"
    for name in (*_QUANTISED, *_ANTIQUANTISED):
        if given.get(name) is not None:
            raise limits.not_simulated(op, name, "given")
    if activation not in _ACTIVATIONS:
        raise limits.not_simulated(op, "activation", activation)
    if expert_tokens is None and expert_tokens_index is None:
        return _feed_forward(x, (weight1, weight2), (bias1, bias2), activation)
    counts = list(expert_tokens or [])
    if expert_tokens_index is not None:
        counts = torch.tensor([0, *expert_tokens_index]).diff().tolist()
    if sum(counts) != x.shape[0] or len(counts) != weight1.shape[0]:
        raise limits.refuse(op, "expert_tokens", counts, f"{weight1.shape[0]} counts of {x.shape[0]} rows")
    biases = [(None if bias1 is None else bias1[e], None if bias2 is None else bias2[e]) for e in range(len(counts))]
    parts = zip(x.split(counts), zip(weight1, weight2, strict=True), biases, strict=True)
    return torch.cat([_feed_forward(rows, weights, bias, activation) for rows, weights, bias in parts])


def _feed_forward(
    x: Tensor, weights: tuple[Tensor, Tensor], biases: tuple[Tensor | None, Tensor | None], activation: str
) -> Tensor:
    """The hidden values round to the dtype of ``x``, in which the second product takes them."""
    hidden = x.float() @ weights[0].float()
    hidden = _ACTIVATIONS[activation](hidden if biases[0] is None else hidden + biases[0].float())
    out = hidden.to(x.dtype).float() @ weights[1].float()
    return (out if biases[1] is None else out + biases[1].float()).to(x.dtype)
