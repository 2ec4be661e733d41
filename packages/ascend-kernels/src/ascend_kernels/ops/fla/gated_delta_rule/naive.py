"""The chunked form in torch, from the definitions of its parts."""

from __future__ import annotations

import torch

from ascend_kernels.ops.fla.chunk_delta_h.naive import chunk_delta_h_naive
from ascend_kernels.ops.fla.chunk_index.naive import chunk_index_naive
from ascend_kernels.ops.fla.chunk_local_cumsum.naive import chunk_local_cumsum_naive
from ascend_kernels.ops.fla.chunk_o.naive import chunk_o_naive
from ascend_kernels.ops.fla.gated_delta_rule.plan import CHUNK
from ascend_kernels.ops.fla.l2norm.naive import l2norm_naive
from ascend_kernels.ops.fla.scaled_dot_kkt.naive import scaled_dot_kkt_naive
from ascend_kernels.ops.fla.solve_tril.naive import solve_tril_naive
from ascend_kernels.ops.fla.wy_fast.naive import wy_fast_naive


def gated_delta_rule_naive(
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
    """See :func:`ascend_kernels.gated_delta_rule`; between the parts everything is in float32."""
    query, key, value = q.float(), k.float(), v.float()
    if normalise:
        query, key = l2norm_naive(query, 1e-6), l2norm_naive(key, 1e-6)
    _, first, end, offsets = chunk_index_naive(cu_seqlens, q.shape[0], CHUNK)
    used = int(offsets[-1])
    first, end = first[:used], end[:used]
    sums = chunk_local_cumsum_naive(g, first, end, CHUNK, False, 1.0)
    matrix = scaled_dot_kkt_naive(key, beta, sums, first, end, CHUNK)
    inverse = solve_tril_naive(matrix, first, end, torch.float32)
    w, u = wy_fast_naive(key, value, beta, sums, inverse, first, end)
    states, deltas, final = chunk_delta_h_naive(key, w, u, sums, initial_state, cu_seqlens, offsets, used, CHUNK)
    output = chunk_o_naive(query, key, deltas, states, sums, first, end, scale, CHUNK)
    return output.to(v.dtype), final
