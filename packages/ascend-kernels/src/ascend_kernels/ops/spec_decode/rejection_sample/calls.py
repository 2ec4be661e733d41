"""The calls worth compiling before serving."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ascend_kernels.calls import Call, meta
from ascend_kernels.ops.sampling.probabilities.calls import VOCAB


def calls() -> Iterator[Call]:
    """Three drafts per request: each kind of verification, with and without draft probabilities and candidates."""
    requests, drafts, candidates = 48, 3, 1024
    rows = requests * drafts
    ids, floats = meta(rows, dtype=torch.int32), meta(rows, dtype=torch.float32)
    cu_num_drafts = torch.arange(drafts, rows + 1, drafts, dtype=torch.int32)
    bonus, temperature = meta(requests, dtype=torch.int32), meta(requests, dtype=torch.float32)
    whole, few = meta(rows, VOCAB, dtype=torch.float32), meta(rows, candidates, dtype=torch.float32)
    indices = meta(rows, candidates, dtype=torch.int64)
    # Draft, recovered token, noise and a probability per row; offsets, bonus, temperature and results per request.
    minimum = rows * 16 + requests * (12 + 4 * (drafts + 1))
    for block in (False, True):
        for proposals in (None, whole):
            arguments = (ids, cu_num_drafts, whole, proposals, ids, bonus, floats, temperature)
            label = ("block" if block else "single") + ("" if proposals is None else "-drafts")
            more = 0 if proposals is None else 4 * rows
            yield Call(label, (*arguments, None, None, drafts, block, 0.0, 0.0), minimum + more)
            yield Call(
                f"{label}-entropy", (*arguments, None, floats, drafts, block, 0.09, 0.3), minimum + more + 4 * rows
            )
        candidate_arguments = (ids, cu_num_drafts, few, None, ids, bonus, floats, temperature, indices)
        label = f"{'block' if block else 'single'}-candidates"
        yield Call(label, (*candidate_arguments, None, drafts, block, 0.0, 0.0), minimum + few.nbytes + indices.nbytes)
