"""Structured output: forbidding the tokens that a grammar rules out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import GrammarOutput, SchedulerOutput

BITS = 32
"""Tokens per mask word."""


@cache
def _bit_positions(device: torch.device) -> torch.Tensor:
    return torch.arange(BITS, dtype=torch.int32, device=device)


def apply_token_bitmask(logits: torch.Tensor, bitmask: torch.Tensor, rows: torch.Tensor | None) -> None:
    """Set the logits of forbidden tokens to minus infinity, in place.

    Args:
        logits: ``[requests, vocabulary]``.
        bitmask: int32 ``[masked, ceil(vocabulary / 32)]``; bit ``t % 32`` of word ``t // 32`` allows token ``t``.
        rows: int64 ``[masked]``, the row of ``logits`` that each mask belongs to; None if they are its rows in order.
    """
    vocabulary = logits.shape[1]
    bits = (bitmask.unsqueeze(-1) >> _bit_positions(logits.device)) & 1
    forbidden = bits.flatten(1)[:, :vocabulary] == 0
    if rows is None:
        logits.masked_fill_(forbidden, float("-inf"))
    else:
        logits.index_copy_(0, rows, logits.index_select(0, rows).masked_fill_(forbidden, float("-inf")))


def apply_grammar_bitmask(
    scheduler_output: SchedulerOutput, grammar_output: GrammarOutput, req_ids: list[str], logits: torch.Tensor
) -> None:
    """Apply the scheduler's bitmask, whose rows are in its own order, to the batch's logits.

    A request has one row per scheduled draft token and one more, in the bitmask as in the logits.
    """
    drafts = scheduler_output.scheduled_spec_decode_tokens
    first_row: dict[str, int] = {}
    row = 0
    for req_id in req_ids:
        first_row[req_id] = row
        row += 1 + len(drafts.get(req_id, ()))
    rows: list[int] = []
    mask_rows: list[int] = []
    mask_row = 0
    for req_id in grammar_output.structured_output_request_ids:
        count = 1 + len(drafts.get(req_id, ()))
        start = first_row.get(req_id)
        if start is not None:
            rows.extend(range(start, start + count))
            mask_rows.extend(range(mask_row, mask_row + count))
        mask_row += count
    if not rows:
        return
    selected = np.ascontiguousarray(grammar_output.grammar_bitmask[mask_rows])
    bitmask = torch.from_numpy(selected).pin_memory().to(logits.device, non_blocking=True)
    in_order = rows == list(range(logits.shape[0]))
    index = None if in_order else torch.tensor(rows, pin_memory=True).to(logits.device, non_blocking=True)
    apply_token_bitmask(logits, bitmask, index)
