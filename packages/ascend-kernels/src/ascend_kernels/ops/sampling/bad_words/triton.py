"""Triton kernel: a program compares the end of a row's sequence with each word of its request, token by token."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch
from ascend_kernels.target import current_target


@triton.jit(do_not_specialize=["rows", "vocab"])
def bad_words_kernel(
    logits,
    words,
    word_starts,
    first_word,
    output_ids,
    output_lengths,
    request_of_row,
    input_ids,
    draft_index,
    rows,
    vocab,
    logits_stride,
    output_stride,
    HAS_REQUESTS: tl.constexpr,
    HAS_DRAFTS: tl.constexpr,
):
    for row in range(tl.program_id(0).to(tl.int64), rows, tl.num_programs(0)):
        request = row
        if HAS_REQUESTS:
            request = tl.load(request_of_row + row).to(tl.int64)
        length = tl.load(output_lengths + request).to(tl.int32)
        total = length
        if HAS_DRAFTS:
            total += tl.load(draft_index + row).to(tl.int32)
        for word in range(tl.load(first_word + request), tl.load(first_word + request + 1)):
            start = tl.load(word_starts + word)
            last = tl.load(word_starts + word + 1) - 1
            before = last - start
            matches = ((before >= 0) & (before <= total)).to(tl.int32)
            for index in range(tl.where(matches > 0, before, 0)):
                place = total - before + index
                wanted = tl.load(words + start + index).to(tl.int32)
                committed = place < length
                # Both addresses are valid whichever token counts: an NPU reads where a scalar's mask says no, too.
                token = tl.load(output_ids + request * output_stride + tl.where(committed, place, 0)).to(tl.int32)
                if HAS_DRAFTS:
                    draft = tl.load(input_ids + row - tl.where(committed, 0, total - 1 - place)).to(tl.int32)
                    token = tl.where(committed, token, draft)
                matches = matches * (token == wanted).to(tl.int32)
            if matches > 0:
                ending = tl.load(words + last).to(tl.int32)
                if (ending >= 0) & (ending < vocab):
                    tl.store(logits + row * logits_stride + ending, float("-inf"))


def bad_words_triton(
    logits: torch.Tensor,
    words: torch.Tensor,
    word_starts: torch.Tensor,
    first_word: torch.Tensor,
    output_ids: torch.Tensor,
    output_lengths: torch.Tensor,
    request_of_row: torch.Tensor | None,
    input_ids: torch.Tensor | None,
    draft_index: torch.Tensor | None,
) -> None:
    """See :func:`ascend_kernels.apply_bad_words`."""
    rows, vocab = logits.shape
    if output_ids.shape[1] == 0:  # nothing was generated; the kernel reads an element all the same
        output_ids = output_lengths[:, None]
    target = current_target(logits.device)
    launch(
        bad_words_kernel,
        (min(rows, target.vector_cores if target.kind == "ascend" else MAX_PROGRAMS),),
        logits,
        words,
        word_starts,
        first_word,
        output_ids,
        output_lengths,
        request_of_row,
        input_ids,
        draft_index,
        rows,
        vocab,
        logits.stride(0),
        output_ids.stride(0),
        HAS_REQUESTS=request_of_row is not None,
        HAS_DRAFTS=draft_index is not None,
        num_warps=1,
    )
