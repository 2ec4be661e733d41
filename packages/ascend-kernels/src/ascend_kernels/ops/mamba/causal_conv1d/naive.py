"""The definitions in torch: every output is a sum over a window of rows, old ones from the state."""

from __future__ import annotations

from itertools import pairwise

import torch


def _convolve(
    rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, silu: bool, dtype: torch.dtype
) -> torch.Tensor:
    """Outputs for all windows of ``rows`` ``[width - 1 + tokens, channels]``."""
    columns = rows.float().t()[None]
    filters, offset = weight.float()[:, None], None if bias is None else bias.float()
    result = torch.nn.functional.conv1d(columns, filters, offset, groups=rows.shape[1])[0].t()
    return (torch.nn.functional.silu(result) if silu else result).to(dtype)


def _window(state: torch.Tensor, slot: int) -> torch.Tensor:
    return torch.zeros_like(state[0]) if slot < 0 else state[slot].clone()


def causal_conv1d_naive(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    read_slots: torch.Tensor,
    write_slots: torch.Tensor,
    first_block: torch.Tensor | None,
    last_block: torch.Tensor | None,
    computed: torch.Tensor | None,
    block_size: int,
    silu: bool,
) -> torch.Tensor:
    """See :func:`ascend_kernels.causal_conv1d`."""
    output = torch.empty_like(x, memory_format=torch.contiguous_format)
    history = weight.shape[1] - 1
    for n, (begin, end) in enumerate(pairwise(cu_seqlens.tolist())):
        if begin == end:
            continue
        rows = torch.cat([_window(state, int(read_slots[n])).to(x.dtype), x[begin:end]])
        output[begin:end] = _convolve(rows, weight, bias, silu, x.dtype)
        passed = {0 if last_block is None else int(last_block[n]): end - begin}
        if first_block is not None and last_block is not None and computed is not None:
            for block in range(int(first_block[n]), int(last_block[n])):
                passed[block] = (block + 1) * block_size - int(computed[n])
        for block, count in passed.items():
            slot = int(write_slots[n, block])
            if slot >= 0:
                state[slot] = rows[count : count + history].to(state.dtype)
    return output


def causal_conv1d_update_naive(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor,
    cu_seqlens: torch.Tensor,
    read_slots: torch.Tensor,
    write_slots: torch.Tensor,
    num_accepted: torch.Tensor | None,
    silu: bool,
) -> torch.Tensor:
    """See :func:`ascend_kernels.causal_conv1d_update`."""
    output = torch.empty_like(x, memory_format=torch.contiguous_format)
    history, length = weight.shape[1] - 1, state.shape[1]
    for n, (begin, end) in enumerate(pairwise(cu_seqlens.tolist())):
        if begin == end:
            continue
        window = _window(state, int(read_slots[n]))
        skipped = 0 if num_accepted is None else max(int(num_accepted[n]) - 1, 0)
        before = window[skipped : skipped + history].to(x.dtype)
        output[begin:end] = _convolve(torch.cat([before, x[begin:end]]), weight, bias, silu, x.dtype)
        slot = int(write_slots[n])
        if slot >= 0:
            kept = window if num_accepted is None else window[skipped + 1 : skipped + 1 + length - (end - begin)]
            state[slot] = torch.cat([kept, x[begin:end].to(state.dtype)])[-length:]
    return output
