# SPDX-License-Identifier: Apache-2.0
"""Adding the experts' rows up by token, with biases and residuals; reordering rows received from other ranks."""

from __future__ import annotations

import torch
from torch import Tensor

from ascend_sim.references import limits
from ascend_sim.references.registry import Grade, reference
from ascend_sim.references.sources import cann_doc, op_plugin_test, wheel_doc
from ascend_sim.references.undefined import undefined


@reference("npu::npu_moe_finalize_routing", source=op_plugin_test("test_npu_moe_finalize_routing"), grade=Grade.GOLDEN)
def npu_moe_finalize_routing(
    expanded_permuted_rows: Tensor,
    skip1: Tensor | None,
    skip2: Tensor | None,
    bias: Tensor | None,
    scales: Tensor | None,
    expanded_src_to_dst_row: Tensor,
    export_for_source_row: Tensor | None,
    drop_pad_mode: int | None = 0,
    k: int | None = 1,
) -> Tensor:
    """``skip1 + skip2 + sum over k of scales[i, k] * (rows[index[k * N + i]] + bias[expert[i, k]])``.

    The index counts choices column by column in modes 0 and 1, token by token (``index[i * K + k]``) in 2 and 3; modes
    1 and 3 take rows [E, C, H] and skip index -1. Sums are float32.
    """
    op = "npu_moe_finalize_routing"
    if drop_pad_mode not in (None, 0, 1, 2, 3):
        raise limits.refuse(op, "drop_pad_mode", drop_pad_mode, "0, 1, 2 or 3")
    if skip1 is None and skip2 is not None:
        raise limits.refuse(op, "skip1", None, "a tensor, with skip2")
    mode = drop_pad_mode or 0
    count = len(expanded_src_to_dst_row)
    tokens = scales.shape[0] if scales is not None else count // (k or 1)
    index = expanded_src_to_dst_row.long()
    index = index.view(-1, tokens).t() if mode < 2 else index.view(tokens, -1)
    rows = expanded_permuted_rows.flatten(0, -2)
    used = index >= 0
    values = rows[index.clamp(min=0)].float()
    if bias is not None:
        if export_for_source_row is None:
            raise limits.refuse(op, "export_for_source_row", None, "the experts, with bias")
        values = values + bias[export_for_source_row.long()].float()
    weights = used.float() if scales is None else scales.float() * used
    out = torch.einsum("tk,tkh->th", weights, values)
    for skip in (skip1, skip2):
        if skip is not None:
            out += skip.float()
    return out.to(expanded_permuted_rows.dtype)


@reference(
    "npu::npu_moe_re_routing",
    source=cann_doc("ops-transformer", "moe/moe_re_routing/README.md"),
    grade=Grade.DOCUMENTED,
    note="without per_token_scales the second result is undefined",
)
def npu_moe_re_routing(
    tokens: Tensor,
    expert_token_num_per_rank: Tensor,
    *,
    per_token_scales: Tensor | None = None,
    expert_token_num_type: int = 1,
    idx_type: int = 0,
    tokens_dtype: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows received rank by rank, sorted by expert within each rank, put in order of expert and then rank.

    Args:
        tokens: [A, H].
        expert_token_num_per_rank: [ranks, experts], summing up to A.

    Returns:
        The rows, their scales, the old place of each row (``idx_type`` 0) or the new place of each old one (1), int32,
        and the rows of each expert.
    """
    op = "npu_moe_re_routing"
    if expert_token_num_type != 1:
        raise limits.refuse(op, "expert_token_num_type", expert_token_num_type, "1 (counts)")
    if tokens_dtype is not None:
        raise limits.not_simulated(op, "tokens_dtype", tokens_dtype)
    ranks, experts = expert_token_num_per_rank.shape
    counts = expert_token_num_per_rank.long()
    if int(counts.sum()) != len(tokens):
        raise limits.refuse(op, "the sum of expert_token_num_per_rank", int(counts.sum()), f"{len(tokens)}, the tokens")
    expert = torch.arange(experts).repeat(ranks).repeat_interleave(counts.flatten())
    source = expert.argsort(stable=True)
    scales = undefined(tokens.shape[:1], torch.float32) if per_token_scales is None else per_token_scales[source]
    index = source if idx_type == 0 else source.argsort()
    return tokens[source], scales, index.int(), expert_token_num_per_rank.sum(0, dtype=expert_token_num_per_rank.dtype)


@reference(
    "npu::npu_moe_update_expert",
    source=wheel_doc("npu_moe_update_expert"),
    grade=Grade.GOLDEN,
    note="without pruning the second result is undefined",
)
def npu_moe_update_expert(
    expert_ids: Tensor,
    eplb_table: Tensor,
    *,
    expert_scales: Tensor | None = None,
    pruning_threshold: Tensor | None = None,
    active_mask: Tensor | None = None,
    local_rank_id: int = -1,
    world_size: int = -1,
    balance_mode: int = 0,
) -> tuple[Tensor, Tensor]:
    """Replace logical experts [T, K] by physical ones and mark the choices worth sending.

    A row of ``eplb_table`` is the number of a logical expert's copies and then the copies. ``balance_mode`` 0 takes
    copy ``local_rank_id // ceil(world_size / copies)``, 1 takes copy ``token % copies``. A choice is kept if its scale
    is at least ``pruning_threshold[k]`` times the sum of the token's scales and the token is active.
    """
    op = "npu_moe_update_expert"
    table = eplb_table[expert_ids.long()]
    copies = table[..., 0]
    if balance_mode == 0:
        if not 0 <= local_rank_id < world_size:
            raise limits.refuse(op, "local_rank_id", local_rank_id, f"0 to world_size ({world_size}) - 1")
        copy = local_rank_id // -(-world_size // copies)
    elif balance_mode == 1:
        copy = torch.arange(len(expert_ids)).unsqueeze(1) % copies
    else:
        raise limits.refuse(op, "balance_mode", balance_mode, "0 or 1")
    chosen = table.gather(-1, copy.long().unsqueeze(-1) + 1).squeeze(-1).to(expert_ids.dtype)
    if expert_scales is None or pruning_threshold is None:
        if expert_scales is not None or pruning_threshold is not None or active_mask is not None:
            raise limits.refuse(
                op, "expert_scales, pruning_threshold", "one of the two", "both (active_mask needs them)"
            )
        return chosen, undefined(expert_ids.shape, torch.bool)
    scales = expert_scales.float()
    kept = scales >= pruning_threshold.reshape(1, -1) * scales.sum(-1, keepdim=True)
    return chosen, kept if active_mask is None else kept & active_mask.unsqueeze(1)
