"""Verification of drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ascend_kernels.library import register
from ascend_kernels.ops.spec_decode.rejection_sample.calls import calls
from ascend_kernels.ops.spec_decode.rejection_sample.naive import rejection_sample_naive


def _triton() -> Callable[..., Any]:
    from ascend_kernels.ops.spec_decode.rejection_sample.triton import rejection_sample_triton

    return rejection_sample_triton


def _fake(draft_token_ids: torch.Tensor, *arguments: Any) -> torch.Tensor:
    temperature, max_drafts = arguments[6], arguments[9]
    return draft_token_ids.new_empty((temperature.shape[0], max_drafts + 1), dtype=torch.int32)


_operator = register(
    "rejection_sample(Tensor draft_token_ids, Tensor cu_num_drafts, Tensor target_probs, Tensor? draft_probs, "
    "Tensor recovered, Tensor bonus, Tensor uniform, Tensor temperature, Tensor? target_indices, Tensor? entropy, "
    "int max_drafts, bool block, float posterior_threshold, float posterior_alpha) -> Tensor",
    naive=rejection_sample_naive,
    triton=_triton,
    calls=calls,
    fake=_fake,
)


def rejection_sample(
    draft_token_ids: torch.Tensor,
    cu_num_drafts: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor | None,
    recovered: torch.Tensor,
    bonus: torch.Tensor,
    uniform: torch.Tensor,
    temperature: torch.Tensor,
    max_drafts: int,
    target_indices: torch.Tensor | None = None,
    *,
    block: bool = False,
    entropy: torch.Tensor | None = None,
    posterior_threshold: float = 0.09,
    posterior_alpha: float = 0.3,
) -> torch.Tensor:
    """Accept the drafts of each request as far as they hold, and emit one token more.

    A greedy request accepts drafts while they are the target's argmax. Another accepts a draft if ``p / q >= u`` for
    the draft's probabilities ``p`` (target) and ``q`` (drafter) and uniform noise ``u`` (Leviathan et al. 2023, arXiv
    2211.17192). Behind the last accepted draft comes the recovered token of the first rejected one, or, where all are
    accepted, the bonus token.

    ``block`` accepts drafts together: with ``c[i] = min(c[i - 1] * p[i] / q[i], 1)``, all up to the last ``i`` whose
    ``c[i]`` reaches the product of ``u[0] ... u[i]``. ``entropy`` lowers each ``u`` to
    ``u * min(exp(-posterior_alpha * H), posterior_threshold)``, with ``H`` the entropy of the target. Neither keeps the
    target's distribution exactly.

    Args:
        draft_token_ids: int32 or int64 ``[rows]``, all requests behind one another; negative ids are rejected and no
            table is read with them.
        cu_num_drafts: int32 ``[requests]``, how many drafts this and the requests before it have; not decreasing.
        target_probs: fp32 ``[rows, columns]``.
        draft_probs: fp32 ``[rows, vocab]``; None: ``q`` is 1.
        recovered: int32 ``[rows]``, of :func:`ascend_kernels.recovered_tokens`; for greedy requests the argmax.
        bonus: int32 ``[requests]`` or ``[requests, 1]``, contiguous.
        uniform: fp32 ``[rows]``, in ``[0, 1)``.
        temperature: fp32 ``[requests]``; 0 marks greedy requests.
        max_drafts: the most drafts that a request may have.
        target_indices: int32 or int64 ``[rows, columns]``, the token of each column where the columns are candidates
            gathered from a sharded vocabulary; a draft that is not among them has ``p = 0``. None: column ``i`` is
            token ``i``.
        block: accept drafts together.
        entropy: fp32 ``[rows]``, of :func:`ascend_kernels.entropy` on the target's probabilities.
        posterior_threshold: the most that ``entropy`` leaves of ``u``.
        posterior_alpha: how strongly entropy lowers ``u``.

    Returns:
        int32 ``[requests, max_drafts + 1]``: the emitted tokens, then -1.

    Raises:
        ValueError: the shapes do not belong together.
    """
    rows, requests = draft_token_ids.shape[:1], temperature.shape[:1]
    for name, tensor in (("recovered", recovered), ("uniform", uniform), ("entropy", entropy)):
        if tensor is not None and tensor.shape != rows:
            raise ValueError(f"rejection_sample: {name} {tuple(tensor.shape)} for {rows[0]} drafts")
    for name, tensor in (
        ("target_probs", target_probs), ("draft_probs", draft_probs), ("target_indices", target_indices)
    ):  # fmt: skip
        if tensor is not None and (tensor.dim() != 2 or tensor.shape[:1] != rows):
            raise ValueError(f"rejection_sample: {name} {tuple(tensor.shape)} for {rows[0]} drafts: a row for each")
    if cu_num_drafts.shape != requests or bonus.numel() != requests[0]:
        raise ValueError(
            f"rejection_sample: cu_num_drafts {tuple(cu_num_drafts.shape)} and bonus {tuple(bonus.shape)} for "
            f"{requests[0]} requests"
        )
    return _operator(
        draft_token_ids, cu_num_drafts, target_probs, draft_probs, recovered, bonus.view(-1), uniform, temperature,
        target_indices, entropy, max_drafts, block, posterior_threshold, posterior_alpha,
    )  # fmt: skip
