"""What the simulated NPU was asked to do: operator counts, and host time without compute.

>>> from ascend_sim import instruments
>>> with instruments.counting() as counts:
...     graph.replay()
>>> counts["replays"], counts["graph_tasks"], counts["ops"]
"""

import contextlib
from collections.abc import Iterator

import torch


def counters() -> dict[str, int]:
    """Totals since the process began.

    Keys: `ops` (operators launched outside graphs), `copies` (those of them that copy, and transfers of torch_npu's
    own), `cpu_fallbacks` (operators torch_npu has no kernel for), `replays`, `graph_tasks` (tasks run by replays),
    `suspended_replays` (times a replay had to wait for an event), `task_updates`; `op:<name>` per operator outside
    graphs; `graph:<name>` per operator inside, counted only within `counting()`.
    """
    return dict(torch.ops.ascend_sim.counters())


class Counts(dict[str, int]):
    """Counts of a `counting()` block, complete when it ends. Keys as in `counters()`; absent keys count 0."""

    def __missing__(self, key: str) -> int:
        return 0


@contextlib.contextmanager
def counting() -> Iterator[Counts]:
    """Counts what happens inside the block, tasks of graphs by name included."""
    counts = Counts()
    torch.ops.ascend_sim.count_tasks(True)
    before = counters()
    try:
        yield counts
    finally:
        after = counters()
        torch.ops.ascend_sim.count_tasks(False)
        counts.update({key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)})


@contextlib.contextmanager
def free_compute() -> Iterator[None]:
    """Makes compute free, to measure host time.

    Operators that dominate a model (matrix products, embedding, norms, attention, argmax, custom operators) return
    outputs of the shape an earlier identical call had, without computing: floating-point ones uninitialised, integer
    ones zero, so that indices stay valid. Tasks of graphs are counted and skipped. Run a few steps inside before
    measuring: the first call of each signature still computes.
    """
    torch.ops.ascend_sim.free_compute(True)
    try:
        yield
    finally:
        torch.ops.ascend_sim.free_compute(False)
