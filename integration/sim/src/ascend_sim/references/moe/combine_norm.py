# SPDX-License-Identifier: Apache-2.0
"""Fetching the experts' results, adding the residual and normalising (MC2)."""

from __future__ import annotations

from torch import Tensor

from ascend_sim.references.moe.combine import npu_moe_distribute_combine_v2
from ascend_sim.references.moe.distribute import refuse_given
from ascend_sim.references.norm import rms_norm_float
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc


@reference(
    "npu::npu_moe_distribute_combine_add_rms_norm",
    source=cann_doc(
        "ops-transformer", "mc2/moe_distribute_combine_add_rms_norm/docs/aclnnMoeDistributeCombineAddRmsNorm.md"
    ),
    grade=Grade.DOCUMENTED,
    note="that the combined tokens and the sum are rounded to x's dtype, as npu_add_rms_norm does, is inferred",
)
def npu_moe_distribute_combine_add_rms_norm(
    expand_x: Tensor,
    expert_ids: Tensor,
    expand_idx: Tensor,
    ep_send_counts: Tensor,
    expert_scales: Tensor,
    residual_x: Tensor,
    gamma: Tensor,
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
    elastic_info: Tensor | None = None,
    ori_x: Tensor | None = None,
    const_expert_alpha_1: Tensor | None = None,
    const_expert_alpha_2: Tensor | None = None,
    const_expert_v: Tensor | None = None,
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
    comm_alg: str = "",
    norm_eps: float = 1e-6,
    zero_expert_num: int = 0,
    copy_expert_num: int = 0,
    const_expert_num: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(y, rstd, x)`` [N, 1, …]: the combined tokens plus ``residual_x``, and their norm."""
    refuse_given(
        "npu_moe_distribute_combine_add_rms_norm", activation_scale=activation_scale, weight_scale=weight_scale
    )
    combined = npu_moe_distribute_combine_v2(
        expand_x,
        expert_ids,
        expand_idx,
        ep_send_counts,
        expert_scales,
        group_ep,
        ep_world_size,
        ep_rank_id,
        moe_expert_num,
        x_active_mask=x_active_mask,
        shared_expert_x=shared_expert_x,
        elastic_info=elastic_info,
        ori_x=ori_x,
        tp_world_size=tp_world_size,
        expert_shard_type=expert_shard_type,
        shared_expert_num=shared_expert_num,
        shared_expert_rank_num=shared_expert_rank_num,
        comm_quant_mode=comm_quant_mode,
        zero_expert_num=zero_expert_num,
        copy_expert_num=copy_expert_num,
        const_expert_num=const_expert_num,
    )
    x = combined.unsqueeze(1) + residual_x.view(len(combined), 1, -1)
    values, rstd = rms_norm_float(x, gamma, norm_eps)
    return values.to(x.dtype), rstd, x
