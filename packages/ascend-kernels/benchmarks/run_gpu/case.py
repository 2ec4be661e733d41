"""What is measured: a call of an operator, its reference in float64, and a peer that does the same work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ascend_kernels.testing import Kind


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes:
        name: operator and shape.
        call: runs the operator; returns its result or results.
        reference: the same results in float64, of a slice of the rows where all would not fit into memory.
        kind: of arithmetic, for the table of tolerances.
        bytes: the least that must move through device memory; 0 if the operator is bound by arithmetic.
        peers: what else does this, by name.
        timed: what is timed, where that is not ``call`` (an operator that works in place).
        rows: how many leading rows ``reference`` gives; None for all.
    """

    name: str
    call: Callable[[], Any]
    reference: Callable[[], Any]
    kind: Kind
    bytes: int
    peers: dict[str, Callable[[], Any]] = field(default_factory=dict)
    rows: int | None = None
    timed: Callable[[], Any] | None = None
