"""Triton kernel: a program lists the chunks of one sequence; one more marks the entries that no chunk uses."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ascend_kernels.launch import MAX_PROGRAMS, launch
from ascend_kernels.ops.fla.chunk_index.plan import BLOCK, most_chunks


@triton.jit(do_not_specialize=["sequences", "entries", "programs"])
def chunk_index_kernel(
    cu_seqlens, sequence, first, end, offsets, sequences, entries, programs, CHUNK: tl.constexpr, BLOCK: tl.constexpr
):
    lane = tl.arange(0, BLOCK)
    for n in range(tl.program_id(0), sequences + 1, programs):
        before = 0
        for start in range(0, n, BLOCK):
            other = start + lane
            inside = other < n
            begins = tl.load(cu_seqlens + other, mask=inside, other=0).to(tl.int32)
            ends = tl.load(cu_seqlens + other + 1, mask=inside, other=0).to(tl.int32)
            before += tl.sum((ends - begins + CHUNK - 1) // CHUNK, axis=0)
        tl.store(offsets + n, before)
        if n == sequences:
            for start in range(before, entries, BLOCK):
                entry = start + lane
                unused = entry < entries
                tl.store(sequence + entry, tl.zeros([BLOCK], dtype=tl.int32) - 1, mask=unused)
                tl.store(first + entry, tl.zeros([BLOCK], dtype=tl.int32), mask=unused)
                tl.store(end + entry, tl.zeros([BLOCK], dtype=tl.int32), mask=unused)
        else:
            begin = tl.load(cu_seqlens + n).to(tl.int32)
            stop = tl.load(cu_seqlens + n + 1).to(tl.int32)
            chunks = (stop - begin + CHUNK - 1) // CHUNK
            for start in range(0, chunks, BLOCK):
                chunk = start + lane
                inside = chunk < chunks
                begins = begin + chunk * CHUNK
                tl.store(sequence + before + chunk, tl.zeros([BLOCK], dtype=tl.int32) + n, mask=inside)
                tl.store(first + before + chunk, begins, mask=inside)
                tl.store(end + before + chunk, tl.minimum(begins + CHUNK, stop), mask=inside)


def chunk_index_triton(
    cu_seqlens: torch.Tensor, tokens: int, chunk: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.chunk_index`."""
    sequences = cu_seqlens.shape[0] - 1
    entries = most_chunks(sequences, tokens, chunk)
    sequence, first, end = (cu_seqlens.new_empty(entries, dtype=torch.int32) for _ in range(3))
    offsets = cu_seqlens.new_empty(sequences + 1, dtype=torch.int32)
    programs = min(sequences + 1, MAX_PROGRAMS)
    launch(
        chunk_index_kernel,
        (programs,),
        cu_seqlens,
        sequence,
        first,
        end,
        offsets,
        sequences,
        entries,
        programs,
        CHUNK=chunk,
        BLOCK=BLOCK,
    )
    return sequence, first, end, offsets
