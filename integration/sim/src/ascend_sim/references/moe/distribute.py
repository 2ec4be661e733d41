# SPDX-License-Identifier: Apache-2.0
"""The operators that send tokens to their experts' ranks and fetch the results (MC2); see :mod:`.dispatch`."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.moe.dispatch import Placement, Sent, dispatch, fill, placement, quantised_rows, slots_of
from ascend_sim.references.ranks import Ranks
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, wheel_meta
from ascend_sim.references.undefined import undefined

_ROWS_PER_ASSIST = 128
_PAGE = cann_doc("ops-transformer", "mc2/moe_distribute_dispatch_v2/docs/aclnnMoeDistributeDispatchV2.md")
_NOTE = (
    "rows beyond those received are undefined; of the ranks of a shared expert a rank's tokens go to the one of its "
    "number modulo theirs, which is inferred; not simulated: tensor parallel groups, quant_mode 1 and 3"
)


def _capacity(where: Placement, rank: int, tokens: int, k: int, version: int) -> int:
    """Rows of the result; ``tokens`` of all ranks."""
    if rank >= where.shared_ranks:
        return tokens * min(where.local, k)
    if version == 1:
        return tokens // where.shared_ranks
    each = where.shared_ranks // where.shared
    return tokens // where.size * -(-where.size // each)


def _occurrences(expert_ids: Tensor, sent: Sent) -> Tensor:
    """For each choice the number of earlier ones of the same expert, int32 [N * K]; undefined for those not sent."""
    k = expert_ids.shape[1]
    routed = sent.choice >= 0
    first = sent.counts.cumsum(0) - sent.counts
    place = torch.arange(len(sent.lane)) - first[sent.lane]
    index = undefined((expert_ids.numel(),), torch.int32)
    index[sent.token[routed] * k + sent.choice[routed]] = place[routed].int()
    return index


def _dispatch(
    op: str,
    version: int,
    x: Tensor,
    expert_ids: Tensor,
    ranks: Ranks,
    where: Placement,
    mask: Tensor | None,
    scales: Tensor | None,
    weights: Tensor | None,
    mode: int,
    tokens: int,
    kind: int,
    tp: int,
    number: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    sent = slots_of(expert_ids, mask, where, ranks.rank)
    rows, row_scales = quantised_rows(op, x[sent.token], where.scale_rows(sent.lane), mode, scales, number)
    chosen = None if weights is None else torch.where(sent.choice < 0, 1.0, weights[sent.token, sent.choice])
    got = dispatch(ranks, where, sent, rows, row_scales, chosen)
    total = tokens or len(x) * ranks.size
    capacity = _capacity(where, ranks.rank, total, expert_ids.shape[1], version)
    if len(got.rows) > capacity:
        raise limits.refuse(op, "global_bs", tokens, f"at least what all ranks send: {len(got.rows)} rows came")
    counts = got.counts.sum(1)
    seen = got.counts.flatten().cumsum(0).int()
    if weights is not None:
        seen = fill(seen, len(seen) + total * 2 * expert_ids.shape[1] * (ranks.size // 8))
    if version == 1:
        index = _occurrences(expert_ids, sent)
    else:
        index = undefined((max(expert_ids.numel(), capacity * _ROWS_PER_ASSIST),), torch.int32)
    return (
        fill(got.rows, capacity),
        undefined((capacity,), torch.float32) if got.scales is None else fill(got.scales, capacity),
        index,
        counts if kind else counts.cumsum(0),
        seen,
        torch.full((tp,), len(got.rows), dtype=torch.int32),
        torch.empty(0) if got.weights is None else fill(got.weights, capacity),
    )


def refuse_tp(op: str, tp_world_size: int) -> None:
    """Only no tensor parallel group, or one of a single rank, is simulated."""
    if tp_world_size > 1:
        raise limits.not_simulated(op, "tp_world_size", tp_world_size)


def refuse_given(op: str, **arguments: object) -> None:
    """Refuse arguments that are neither None nor 0."""
    for name, value in arguments.items():
        if value is not None and not (isinstance(value, int) and value == 0):
            raise limits.not_simulated(op, name, "given")


@reference(
    "npu::npu_moe_distribute_dispatch",
    source=f"{wheel_meta('npu_moe_distribute_dispatch')}; {_PAGE}",
    grade=Grade.DOCUMENTED,
    note=_NOTE,
)
def npu_moe_distribute_dispatch(
    x: Tensor,
    expert_ids: Tensor,
    group_ep: str,
    ep_world_size: int,
    ep_rank_id: int,
    moe_expert_num: int,
    *,
    scales: Tensor | None = None,
    x_active_mask: Tensor | None = None,
    expert_scales: Tensor | None = None,
    group_tp: str = "",
    tp_world_size: int = 0,
    tp_rank_id: int = 0,
    expert_shard_type: int = 0,
    shared_expert_num: int = 1,
    shared_expert_rank_num: int = 0,
    quant_mode: int = 0,
    global_bs: int = 0,
    expert_token_nums_type: int = 1,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Send each token of x [N, H] to the ranks of its experts.

    Returns the rows received, by expert, source rank and token; their scales; for each choice its place among this
    rank's of the same expert; rows (``expert_token_nums_type`` 0: running sums) by expert; running sums of rows by
    expert and source rank; rows received in the tensor parallel group; and ``expert_scales`` of the rows, if given.
    """
    op = "npu_moe_distribute_dispatch"
    refuse_tp(op, tp_world_size)
    ranks = Ranks(op, group_ep, ep_world_size, ep_rank_id)
    where = placement(op, ranks, shared_expert_num, shared_expert_rank_num, moe_expert_num, expert_shard_type)
    return _dispatch(
        op,
        1,
        x,
        expert_ids,
        ranks,
        where,
        x_active_mask,
        scales,
        expert_scales,
        quant_mode,
        global_bs,
        expert_token_nums_type,
        tp_world_size,
        None,
    )


@reference(
    "npu::npu_moe_distribute_dispatch_v2",
    source=f"{wheel_meta('npu_moe_distribute_dispatch_v2')}; {_PAGE}",
    grade=Grade.DOCUMENTED,
    note=_NOTE + "; the third result, for npu_moe_distribute_combine_v2, is undefined, as its reference needs none",
)
def npu_moe_distribute_dispatch_v2(
    x: Tensor,
    expert_ids: Tensor,
    group_ep: str,
    ep_world_size: int,
    ep_rank_id: int,
    moe_expert_num: int,
    *,
    scales: Tensor | None = None,
    x_active_mask: Tensor | None = None,
    expert_scales: Tensor | None = None,
    elastic_info: Tensor | None = None,
    performance_info: Tensor | None = None,
    group_tp: str = "",
    tp_world_size: int = 0,
    tp_rank_id: int = 0,
    expert_shard_type: int = 0,
    shared_expert_num: int = 1,
    shared_expert_rank_num: int = 0,
    quant_mode: int = 0,
    global_bs: int = 0,
    expert_token_nums_type: int = 1,
    comm_alg: str = "",
    zero_expert_num: int = 0,
    copy_expert_num: int = 0,
    const_expert_num: int = 0,
    y_dtype: int | None = None,
    x_dtype: int | None = None,
    scales_dtype: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """:func:`npu_moe_distribute_dispatch`; choices from ``moe_expert_num`` on (zero and copy experts) are not sent."""
    op = "npu_moe_distribute_dispatch_v2"
    refuse_tp(op, tp_world_size)
    refuse_given(op, elastic_info=elastic_info, performance_info=performance_info, x_dtype=x_dtype)
    ranks = Ranks(op, group_ep, ep_world_size, ep_rank_id)
    where = placement(op, ranks, shared_expert_num, shared_expert_rank_num, moe_expert_num, expert_shard_type)
    return _dispatch(
        op,
        2,
        x,
        expert_ids,
        ranks,
        where,
        x_active_mask,
        scales,
        expert_scales,
        quant_mode,
        global_bs,
        expert_token_nums_type,
        tp_world_size,
        y_dtype,
    )
