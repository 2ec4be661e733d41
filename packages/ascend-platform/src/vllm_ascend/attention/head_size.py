"""Head sizes that the fused attention takes in its packed layout, and how others are brought to one of them.

``npu_fused_infer_attention_score`` in layout TND takes any multiple of 16 up to 256 where query heads share key/value
heads, but 64, 128 and 192 alone where each query head has its own.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

SIZE_STEP = 16
LARGEST_SIZE = 256
UNGROUPED_SIZES = (64, 128, 192)


def operator_head_size(head_size: int, *, grouped: bool) -> int:
    """The smallest head size, at least ``head_size``, that the operator takes; zeros in between change no result.

    Raises:
        NotImplementedError: the head is larger than any that the operator takes.
    """
    sizes = range(SIZE_STEP, LARGEST_SIZE + 1, SIZE_STEP) if grouped else UNGROUPED_SIZES
    for size in sizes:
        if size >= head_size:
            return size
    shared = "shared by query heads" if grouped else "of their own for each query head"
    raise NotImplementedError(
        f"head size {head_size}: npu_fused_infer_attention_score takes at most {sizes[-1]} for key/value heads {shared}"
    )


def pad_heads(tensor: torch.Tensor, size: int) -> torch.Tensor:
    """``tensor`` ``[..., head_size]`` with zeros up to ``size``, contiguous."""
    missing = size - tensor.shape[-1]
    return F.pad(tensor, (0, missing)) if missing else tensor.contiguous()


def queries_per_head(head_size: int, *, grouped: bool) -> int:
    """How often each query head is handed to the operator over pages, whose heads cannot be padded.

    Twice makes groups of two out of heads that share nothing, and with it head sizes usable that are not otherwise.

    Raises:
        NotImplementedError: the head size is not possible over pages.
    """
    if head_size % SIZE_STEP or not 0 < head_size <= LARGEST_SIZE:
        raise NotImplementedError(
            f"head size {head_size}: npu_fused_infer_attention_score reads pages of heads that are a multiple of "
            f"{SIZE_STEP} up to {LARGEST_SIZE}"
        )
    return 1 if grouped or head_size in UNGROUPED_SIZES else 2
