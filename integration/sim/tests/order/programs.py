"""Random programs over several streams, and what is true of them by counting."""

import itertools
from dataclasses import dataclass

import torch
from hypothesis import strategies as st

STREAMS = 3
ROWS, COLUMNS = 4, 6


@dataclass(frozen=True)
class Block:
    """A rectangle of one of two matrices."""

    matrix: int
    row: int
    column: int
    rows: int
    columns: int

    def of(self, matrices: list[torch.Tensor]) -> torch.Tensor:
        """The rectangle as a view."""
        return matrices[self.matrix][self.row : self.row + self.rows, self.column : self.column + self.columns]

    def elements(self) -> set[tuple[int, int, int]]:
        """Its elements, one by one."""
        rows, columns = range(self.row, self.row + self.rows), range(self.column, self.column + self.columns)
        return set(itertools.product([self.matrix], rows, columns))


@dataclass(frozen=True)
class Step:
    """`target += 2 * source` on a stream, after waiting for earlier steps."""

    stream: int
    target: Block
    source: Block
    waits: tuple[int, ...] = ()


Program = tuple[Step, ...]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to ten steps; each waits for any earlier ones."""
    steps = []
    for index in range(draw(st.integers(2, 10))):
        rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        target = draw(st.integers(0, 1))
        blocks = [
            Block(matrix, draw(st.integers(0, ROWS - rows)), draw(st.integers(0, COLUMNS - columns)), rows, columns)
            for matrix in (target, 1 - target)
        ]
        waits = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        steps.append(Step(draw(st.integers(0, STREAMS - 1)), blocks[0], blocks[1], tuple(sorted(waits))))
    return tuple(steps)


def unordered_conflicts(program: Program) -> list[tuple[int, int]]:
    """Pairs of steps of which one writes what the other uses, and that no chain of streams and waits orders."""
    before: list[set[int]] = []
    for index, step in enumerate(program):
        direct = {*step.waits, *(other for other in range(index) if program[other].stream == step.stream)}
        before.append(direct.union(*(before[other] for other in direct)))
    found = []
    for first, second in itertools.combinations(range(len(program)), 2):
        writes = program[first].target.elements(), program[second].target.elements()
        reads = program[first].source.elements(), program[second].source.elements()
        if first not in before[second] and (writes[0] & (writes[1] | reads[1]) or writes[1] & reads[0]):
            found.append((first, second))
    return found


def ordered(program: Program) -> Program:
    """The program with a wait for every pair that needs one."""
    steps = list(program)
    while conflicts := unordered_conflicts(tuple(steps)):
        first, second = conflicts[0]
        step = steps[second]
        steps[second] = Step(step.stream, step.target, step.source, tuple(sorted({*step.waits, first})))
    return tuple(steps)


def initial_matrices() -> list[torch.Tensor]:
    """Both matrices on the host: small integers, so that sums are exact."""
    values = torch.arange(2 * ROWS * COLUMNS, dtype=torch.float32).view(2, ROWS, COLUMNS) % 5
    return [values[0].clone(), values[1].clone()]


def run_on_streams(program: Program, streams: list[torch.npu.Stream]) -> list[list[list[float]]]:
    """Both matrices after the program has run on the device."""
    matrices = [matrix.npu() for matrix in initial_matrices()]
    torch.npu.synchronize()
    events: list[torch.npu.Event] = []
    for step in program:
        stream = streams[step.stream]
        for other in step.waits:
            stream.wait_event(events[other])
        with torch.npu.stream(stream):
            step.target.of(matrices).add_(step.source.of(matrices), alpha=2)
        events.append(stream.record_event())
    torch.npu.synchronize()
    return [matrix.tolist() for matrix in matrices]


def run_in_sequence(program: Program) -> list[list[list[float]]]:
    """Both matrices after the steps have run on the host, one after the other."""
    matrices = initial_matrices()
    for step in program:
        step.target.of(matrices).add_(step.source.of(matrices), alpha=2)
    return [matrix.tolist() for matrix in matrices]
