# SPDX-License-Identifier: Apache-2.0
"""Choosing k experts a token from router logits. Among equal scores the expert with the lower number comes first."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test
from ascend_sim.references.undefined import undefined


def top(values: Tensor, k: int) -> Tensor:
    """Indices of the k largest along the last dimension, largest first, ties by index."""
    return values.sort(dim=-1, descending=True, stable=True).indices[..., :k]


def _check_k(op: str, k: int, experts: int) -> None:
    if not 1 <= k <= experts:
        raise limits.refuse(op, "k", k, f"1 to {experts}")


def _scores(x: Tensor, norm_type: int) -> Tensor:
    values = x.float()
    if norm_type == 0:
        return values.softmax(-1)
    if norm_type == 1:
        return values.sigmoid()
    if norm_type == 2:
        return F.softplus(values, threshold=88.0).sqrt()
    raise limits.refuse("npu_moe_gating_top_k", "norm_type", norm_type, "0 (softmax), 1 (sigmoid), 2 (sqrt softplus)")


def _keep_groups(values: Tensor, groups: int, kept: int, mode: int) -> Tensor:
    """``values`` with the experts of all but the ``kept`` best groups set to -inf."""
    op = "npu_moe_gating_top_k"
    experts = values.shape[-1]
    if experts % groups or experts // groups <= mode:
        raise limits.refuse(
            op, "group_count", groups, f"divisors of {experts} that leave more than {mode} experts each"
        )
    if not 1 <= kept <= groups:
        raise limits.refuse(op, "k_group", kept, f"1 to group_count ({groups})")
    grouped = values.unflatten(-1, (groups, -1))
    if mode == 0:
        score = grouped.amax(-1)
    elif mode == 1:
        score = grouped.topk(2, -1).values.sum(-1)
    else:
        raise limits.refuse(op, "group_select_mode", mode, "0 (largest), 1 (sum of the two largest)")
    dropped = torch.ones_like(score, dtype=torch.bool).scatter_(-1, top(score, kept), False)
    return grouped.masked_fill(dropped.unsqueeze(-1), -torch.inf).flatten(-2)


@reference(
    "npu::npu_moe_gating_top_k",
    source=cann_doc("ops-transformer", "moe/moe_gating_top_k/docs/aclnnMoeGatingTopKV2.md")
    + "; moe/moe_gating_top_k/tests/assets/golden.py",
    grade=Grade.GOLDEN,
    note="without out_flag the third result has the Meta kernel's shape and undefined contents",
)
def npu_moe_gating_top_k(
    x: Tensor,
    k: int,
    *,
    bias: Tensor | None = None,
    input_ids: Tensor | None = None,
    tid2eid: Tensor | None = None,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
    routed_scaling_factor: float = 1.0,
    eps: float = 1e-20,
) -> tuple[Tensor, Tensor, Tensor]:
    """Weights [T, k] like x, experts [T, k] int32 and all normalised scores [T, E] float32 of logits ``x`` [T, E].

    The bias takes part in choosing groups and experts, not in the weights. With ``input_ids`` and ``tid2eid`` the
    experts come from the table. Weights are divided by their sum plus ``eps`` unless softmax without ``renorm``.
    """
    op = "npu_moe_gating_top_k"
    if x.dim() != 2:
        raise limits.refuse(op, "x.dim()", x.dim(), "2")
    if (input_ids is None) != (tid2eid is None):
        raise limits.refuse(op, "input_ids, tid2eid", "one of the two", "both or neither")
    norm = _scores(x, norm_type)
    if input_ids is not None and tid2eid is not None:
        chosen = tid2eid[input_ids.long()].long()
    else:
        _check_k(op, k, x.shape[-1] // group_count * k_group)
        values = norm if bias is None else norm + bias.float()
        if group_count > 1:
            values = _keep_groups(values, group_count, k_group, group_select_mode)
        chosen = top(values, k)
    weights = norm.gather(-1, chosen)
    if norm_type != 0 or renorm:
        weights = weights / (weights.sum(-1, keepdim=True) + eps)
    out = norm if out_flag else undefined(x.shape, torch.float32)
    return (weights * routed_scaling_factor).to(x.dtype), chosen.int(), out


def _mark_finished(experts: Tensor, finished: Tensor | None, count: int) -> Tensor:
    """``experts`` as int32, with ``count`` for every choice of a finished row."""
    if finished is None:
        return experts.int()
    return experts.int().masked_fill_(finished.reshape(*experts.shape[:-1], 1), count)


@reference(
    "npu::npu_moe_gating_top_k_softmax", source=op_plugin_test("test_npu_moe_gating_top_k_softmax"), grade=Grade.GOLDEN
)
def npu_moe_gating_top_k_softmax(
    x: Tensor, finished: Tensor | None = None, k: int = 1
) -> tuple[Tensor, Tensor, Tensor]:
    """Softmax over the last dimension, its k largest, their experts (the number of experts for finished rows).

    The third result is a row index that counts column by column: ``row_idx[i, j] = j * rows + i``.
    """
    _check_k("npu_moe_gating_top_k_softmax", k, x.shape[-1])
    scores = x.float().softmax(-1)
    chosen = top(scores, k)
    rows = scores[..., 0].numel()
    row_idx = torch.arange(rows * k, dtype=torch.int32).view(k, rows).t().reshape(chosen.shape)
    return scores.gather(-1, chosen).to(x.dtype), _mark_finished(chosen, finished, x.shape[-1]), row_idx.contiguous()


@reference(
    "npu::npu_moe_gating_top_k_softmax_v2",
    source=op_plugin_test("test_npu_moe_gating_top_k_softmax_v2"),
    grade=Grade.GOLDEN,
    note="of three-dimensional x the Meta kernel gives the third result the shape [x.size(0), x.size(1)]",
)
def npu_moe_gating_top_k_softmax_v2(
    x: Tensor,
    *,
    k: int = 1,
    finished: Tensor | None = None,
    renorm: int | None = 0,
    output_softmax: bool | None = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """As :func:`npu_moe_gating_top_k_softmax`, or with ``renorm`` the softmax of the k largest logits.

    The third result is the whole softmax in float32 where ``output_softmax`` asks for it without ``renorm``.
    """
    _check_k("npu_moe_gating_top_k_softmax_v2", k, x.shape[-1])
    values = x.float()
    scores = values if renorm else values.softmax(-1)
    chosen = top(scores, k)
    weights = scores.gather(-1, chosen)
    if renorm:
        weights = weights.softmax(-1)
    softmax = scores if output_softmax and not renorm else torch.empty(0)
    return weights.to(x.dtype), _mark_finished(chosen, finished, x.shape[-1]), softmax


@reference("atb::_npu_group_topk", source=op_plugin_test("test_atb_group_topk"), grade=Grade.GOLDEN)
def _npu_group_topk(self: Tensor, k: int = 0, group_num: int = 1, n: int = 1) -> None:
    """Set to 0 in place the experts of all groups but the k with the largest sum of their n largest scores."""
    experts = self.shape[-1]
    if group_num < 1 or experts % group_num:
        raise limits.refuse("_npu_group_topk", "group_num", group_num, f"divisors of {experts}")
    _check_k("_npu_group_topk", k, group_num)
    if not 1 <= n <= experts // group_num:
        raise limits.refuse("_npu_group_topk", "n", n, f"1 to {experts // group_num}, the experts of a group")
    grouped = self.view(-1, group_num, experts // group_num)
    score = grouped.float().topk(n, -1).values.sum(-1)
    dropped = torch.ones_like(score, dtype=torch.bool).scatter_(-1, top(score, k), False)
    grouped.masked_fill_(dropped.unsqueeze(-1), 0)
