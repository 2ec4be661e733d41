"""The experts' two products with an activation between, over rows sorted by expert."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ascend_moe.experts.activation import Activation

COUNTS, RUNNING_SUMS = 1, 0
"""Values of ``group_list_type``."""


@dataclass(frozen=True, slots=True)
class ExpertWeights:
    """Weights of the local experts in the layout of checkpoints; the products read them transposed, without a copy.

    Nothing is changed after loading, so loading again, moving an expert and offloading need no second layout.

    Attributes:
        gate_up: [experts, 2 * intermediate, hidden].
        down: [experts, hidden, intermediate].
        gate_up_bias: [experts, 2 * intermediate] in :func:`bias_dtype`, or None.
        down_bias: [experts, hidden] in :func:`bias_dtype`, or None.
    """

    gate_up: torch.Tensor
    down: torch.Tensor
    gate_up_bias: torch.Tensor | None = None
    down_bias: torch.Tensor | None = None


def bias_dtype(weights: torch.dtype) -> torch.dtype:
    """What the grouped product takes as bias beside weights of a dtype: float32 beside bfloat16, else the same."""
    return torch.float32 if weights is torch.bfloat16 else weights


def expert_mlp(
    rows: torch.Tensor, counts: torch.Tensor, weights: ExpertWeights, activation: Activation
) -> torch.Tensor:
    """``down[e] @ activation(gate_up[e] @ row + bias) + bias`` for the rows of every expert e.

    Args:
        rows: [rows, hidden]; the first ``counts[0]`` are expert 0's, and so on. There may be more than ``counts`` add
            up to; their results are undefined.
        counts: [experts] int64, rows of each expert, on the device.
        weights: of the experts.
        activation: between the products.

    Returns:
        [rows, hidden].
    """
    if not len(rows):
        return torch.empty_like(rows)
    inner = activation(_grouped_product(rows, counts, weights.gate_up, weights.gate_up_bias))
    return _grouped_product(inner, counts, weights.down, weights.down_bias)


def _grouped_product(
    rows: torch.Tensor, counts: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    # A list of one count is refused, but one count is also the running sum of one.
    kind = COUNTS if len(counts) > 1 else RUNNING_SUMS
    (product,) = torch.ops.npu.npu_grouped_matmul(
        [rows],
        [weight.transpose(1, 2)],
        bias=None if bias is None else [bias],
        group_list=counts,
        split_item=2,
        group_type=0,
        group_list_type=kind,
    )
    return product
