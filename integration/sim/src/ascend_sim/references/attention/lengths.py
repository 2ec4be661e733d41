# SPDX-License-Identifier: Apache-2.0
"""Sequence lengths that operators take as host lists: per request, or summed up to and including each request."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ascend_sim.references import limits


def from_sums(op: str, argument: str, sums: Sequence[int], total: int | None) -> list[int]:
    """Lengths from cumulative sums ``[s0, s0 + s1, ...]``; the last one must be ``total`` unless that is None."""
    lengths = [after - before for before, after in pairwise((0, *sums))]
    if not lengths or min(lengths) < 0:
        raise limits.refuse(op, argument, list(sums), "a non-empty list of sums that never fall")
    if total is not None and sums[-1] != total:
        raise limits.refuse(op, f"{argument}[-1]", sums[-1], f"{total}, the number of packed tokens")
    return lengths


def per_request(op: str, argument: str, given: Sequence[int] | None, batch: int, longest: int) -> list[int]:
    """Lengths of ``batch`` requests of at most ``longest``: all of it if None, one for all, or the first ``batch``."""
    if given is None:
        return [longest] * batch
    if len(given) == 1:
        lengths = [given[0]] * batch
    elif len(given) >= batch:
        lengths = list(given[:batch])
    else:
        raise limits.refuse(op, f"len({argument})", len(given), f"1, or {batch} (the batch) and more")
    if lengths and (min(lengths) < 0 or max(lengths) > longest):
        raise limits.refuse(op, argument, list(given), f"lengths in [0, {longest}]")
    return lengths
