"""The chunked form of Kimi Delta Attention, from kernels of its parts."""

from __future__ import annotations

import torch

from ascend_kernels.ops.fla.chunk_delta_h.triton import Decay, launch_chunk_delta_h, new_walk
from ascend_kernels.ops.fla.chunk_index.triton import chunk_index_triton
from ascend_kernels.ops.fla.chunk_local_cumsum.triton import chunk_local_cumsum_triton
from ascend_kernels.ops.fla.chunk_o.triton import launch_chunk_o
from ascend_kernels.ops.fla.gated_delta_rule.plan import CHUNK
from ascend_kernels.ops.fla.packed import heads_together
from ascend_kernels.ops.fla.recurrent_delta_rule.triton import recurrent_delta_rule_triton
from ascend_kernels.ops.kda.kda_intra.triton import launch_kda_intra, new_kda_intra
from ascend_kernels.target import current_target


def chunk_kda_triton(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None,
    cu_seqlens: torch.Tensor,
    scale: float,
    normalise: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See :func:`ascend_kernels.chunk_kda`."""
    q, k, v = heads_together(q), heads_together(k), heads_together(v)
    if current_target(q.device).kind == "ascend":
        # The kernel of what depends on no state does not lower for Ascend (a copy within L1); the recurrence does.
        return recurrent_delta_rule_triton(q, k, v, g, beta, initial_state, cu_seqlens, scale, normalise)
    _, first, end, offsets = chunk_index_triton(cu_seqlens, q.shape[0], CHUNK)
    sums = chunk_local_cumsum_triton(g, first, end, CHUNK, False, 1.0)
    initial = None if initial_state is None else initial_state.contiguous()
    intra = new_kda_intra(q, CHUNK)
    launch_kda_intra(q, k, sums, beta, first, end, scale, normalise, CHUNK, intra)
    walk = new_walk(k, v, cu_seqlens, first.shape[0])
    launch_chunk_delta_h(
        intra.faded_keys,
        intra.reading_keys,
        v,
        intra.inverses,
        Decay(sums),
        cu_seqlens,
        offsets,
        CHUNK,
        walk,
        initial,
    )
    output = torch.empty_like(walk.deltas)
    launch_chunk_o(
        intra.faded_queries,
        None,
        walk.deltas,
        walk.states,
        None,
        first,
        end,
        1.0,
        CHUNK,
        output=output,
        scores=intra.scores,
    )
    return output, walk.final
