# SPDX-License-Identifier: Apache-2.0
"""The operators that fetch the experts' results of what was dispatched and add them up (MC2); see :mod:`.dispatch`."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.moe.dispatch import active_choices, give_back, placement, slots_of
from ascend_sim.references.moe.distribute import refuse_given, refuse_tp
from ascend_sim.references.ranks import Ranks
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_meta

_PAGE = cann_doc("ops-transformer", "mc2/moe_distribute_combine_v2/docs/aclnnMoeDistributeCombineV2.md")
_NOTE = (
    "tokens that are not active get zeros, which is inferred; sums are float32; "
    "not simulated: tensor parallel groups, comm_quant_mode"
)


def _combine(
    op: str,
    expand_x: Tensor,
    expert_ids: Tensor,
    expert_scales: Tensor,
    ranks: Ranks,
    routed: int,
    *,
    shared: int,
    shared_ranks: int,
    kind: int,
    mask: Tensor | None,
    shared_x: Tensor | None,
    zero: int = 0,
    copies: int = 0,
    ori_x: Tensor | None = None,
) -> Tensor:
    """float32 ``[N, H]``: the weighted results, plus those of shared experts, copied tokens and ``shared_x``."""
    where = placement(op, ranks, shared, shared_ranks, routed, kind)
    sent = slots_of(expert_ids, mask, where, ranks.rank)
    rows = give_back(ranks, where, sent, expand_x).float()
    weights = torch.where(sent.choice < 0, 1.0, expert_scales[sent.token, sent.choice].float())
    out = torch.zeros(len(expert_ids), expand_x.shape[1])
    out.index_add_(0, sent.token, rows * weights.unsqueeze(1))
    active = active_choices(expert_ids, mask)
    if copies:
        if ori_x is None:
            raise limits.refuse(op, "ori_x", None, "a tensor with copy_expert_num")
        first = routed + zero
        copied = active & (expert_ids >= first) & (expert_ids < first + copies)
        out += (expert_scales.float() * copied).sum(1, keepdim=True) * ori_x.float()
    if shared_x is not None:
        out += shared_x.float().view_as(out) * active.any(1, keepdim=True)
    return out


@reference(
    "npu::npu_moe_distribute_combine",
    source=f"{wheel_meta('npu_moe_distribute_combine')}; {_PAGE}",
    grade=Grade.DOCUMENTED,
    note=_NOTE,
)
def npu_moe_distribute_combine(
    expand_x: Tensor,
    expert_ids: Tensor,
    expand_idx: Tensor,
    ep_send_counts: Tensor,
    expert_scales: Tensor,
    group_ep: str,
    ep_world_size: int,
    ep_rank_id: int,
    moe_expert_num: int,
    *,
    tp_send_counts: Tensor | None = None,
    x_active_mask: Tensor | None = None,
    activation_scale: Tensor | None = None,
    weight_scale: Tensor | None = None,
    group_list: Tensor | None = None,
    expand_scales: Tensor | None = None,
    shared_expert_x: Tensor | None = None,
    group_tp: str = "",
    tp_world_size: int = 0,
    tp_rank_id: int = 0,
    expert_shard_type: int = 0,
    shared_expert_num: int = 1,
    shared_expert_rank_num: int = 0,
    global_bs: int = 0,
    out_dtype: int = 0,
    comm_quant_mode: int = 0,
    group_list_type: int = 0,
) -> Tensor:
    """Sum over a token's experts of ``expert_scales`` [N, K] times their rows of ``expand_x``; [N, H].

    ``expand_x`` has its rows where :func:`npu_moe_distribute_dispatch` has put them.
    """
    op = "npu_moe_distribute_combine"
    refuse_tp(op, tp_world_size)
    refuse_given(op, comm_quant_mode=comm_quant_mode, activation_scale=activation_scale, weight_scale=weight_scale)
    return _combine(
        op,
        expand_x,
        expert_ids,
        expert_scales,
        Ranks(op, group_ep, ep_world_size, ep_rank_id),
        moe_expert_num,
        shared=shared_expert_num,
        shared_ranks=shared_expert_rank_num,
        kind=expert_shard_type,
        mask=x_active_mask,
        shared_x=shared_expert_x,
    ).to(expand_x.dtype)


@reference(
    "npu::npu_moe_distribute_combine_v2",
    source=f"{wheel_meta('npu_moe_distribute_combine_v2')}; {_PAGE}",
    grade=Grade.DOCUMENTED,
    note=_NOTE + ", constant experts",
)
def npu_moe_distribute_combine_v2(
    expand_x: Tensor,
    expert_ids: Tensor,
    assist_info_for_combine: Tensor,
    ep_send_counts: Tensor,
    expert_scales: Tensor,
    group_ep: str,
    ep_world_size: int,
    ep_rank_id: int,
    moe_expert_num: int,
    *,
    tp_send_counts: Tensor | None = None,
    x_active_mask: Tensor | None = None,
    expand_scales: Tensor | None = None,
    shared_expert_x: Tensor | None = None,
    elastic_info: Tensor | None = None,
    ori_x: Tensor | None = None,
    const_expert_alpha_1: Tensor | None = None,
    const_expert_alpha_2: Tensor | None = None,
    const_expert_v: Tensor | None = None,
    performance_info: Tensor | None = None,
    group_tp: str = "",
    tp_world_size: int = 0,
    tp_rank_id: int = 0,
    expert_shard_type: int = 0,
    shared_expert_num: int = 1,
    shared_expert_rank_num: int = 0,
    global_bs: int = 0,
    comm_quant_mode: int = 0,
    comm_alg: str = "",
    zero_expert_num: int = 0,
    copy_expert_num: int = 0,
    const_expert_num: int = 0,
) -> Tensor:
    """:func:`npu_moe_distribute_combine`; of experts beyond the routed ones the first add nothing, others ``ori_x``."""
    op = "npu_moe_distribute_combine_v2"
    refuse_tp(op, tp_world_size)
    refuse_given(
        op, elastic_info=elastic_info, performance_info=performance_info, comm_quant_mode=comm_quant_mode,
        const_expert_num=const_expert_num,
    )  # fmt: skip
    return _combine(
        op,
        expand_x,
        expert_ids,
        expert_scales,
        Ranks(op, group_ep, ep_world_size, ep_rank_id),
        moe_expert_num,
        shared=shared_expert_num,
        shared_ranks=shared_expert_rank_num,
        kind=expert_shard_type,
        mask=x_active_mask,
        shared_x=shared_expert_x,
        zero=zero_expert_num,
        copies=copy_expert_num,
        ori_x=ori_x,
    ).to(expand_x.dtype)
