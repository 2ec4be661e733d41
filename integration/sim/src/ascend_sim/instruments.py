"""What the simulated NPU was asked to do: counts, traces, host time without compute, the order of streams.

>>> from ascend_sim import instruments
>>> with instruments.counting() as counts:
...     graph.replay()
>>> counts["replays"], counts["graph_tasks"], counts["ops"]
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import torch

from ascend_sim import runtime


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
def trace(path: str | Path) -> Iterator[None]:
    """Writes what happens inside the block as a Chrome trace, which Perfetto and chrome://tracing show.

    NPUs are processes, streams are threads. Each operator has its tensors' dtypes and shapes; tasks of a graph lie
    inside the slice of its replay, with graph and position; arrows lead from the record of an event to the waits for
    it; copies of torch_npu's own have their bytes. Categories: `op` (ran at the call), `captured` (recorded into a
    graph), `update` (replaces a captured task), `submitted` (waits behind an event; the slice is the call) and then
    `queued` (ran), `graph`, `replay`, `event`, `copy`. Times are the host's.

    Events go to the file as they come, so that a trace of any length takes little memory and one of a program that
    fails, or is killed, can be read. `ASCEND_SIM_CHROME_TRACE=file` does the same for whole processes.

    Raises:
        RuntimeError: a trace is being written already, or the file cannot be.
    """
    torch.ops.ascend_sim.trace_start(str(Path(path).absolute()))
    try:
        yield
    finally:
        torch.ops.ascend_sim.trace_stop()


@contextlib.contextmanager
def _order(mode: str, seed: int) -> Iterator[None]:
    before = torch.ops.ascend_sim.order()
    torch.npu.synchronize()
    torch.ops.ascend_sim.set_order(mode, seed)
    try:
        yield
        torch.npu.synchronize()  # what the check has still to say about copies
    finally:
        torch.ops.ascend_sim.set_order(before, runtime.settings().seed)


def check_order() -> contextlib.AbstractContextManager[None]:
    """Makes uses of memory that nothing orders an error, inside the block.

    On hardware streams run at the same time. An operator that uses memory which an operator of another stream writes
    must be ordered after it, by an event, a synchronisation, or `Tensor.record_stream`. Where nothing orders the two, a
    `RuntimeError` names both operators, both streams and the memory. The same as `ASCEND_SIM_ORDER=check`.
    """
    return _order("check", 0)


def random_order(seed: int) -> contextlib.AbstractContextManager[None]:
    """Runs work in an order that `seed` chooses among those that streams and events permit, inside the block.

    A program whose streams are ordered gives the same values for every seed; when one host thread submits, a seed gives
    the same order every time. The same as `ASCEND_SIM_ORDER=random` with `ASCEND_SIM_SEED`.
    """
    return _order("random", seed)


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
