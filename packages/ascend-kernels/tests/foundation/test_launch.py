"""Launches: limits, empty grids, records, and the numbers that plans are made of."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_kernels.launch import (
    MAX_PROGRAMS,
    ceil_div,
    launch,
    next_power_of_two,
    previous_power_of_two,
    recorded_launches,
)


class Kernel:
    """Notes how it was launched, as a Triton kernel would be."""

    __name__ = "kernel"

    def __init__(self) -> None:
        self.launches: list[tuple[Any, ...]] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        return lambda *arguments, **options: self.launches.append((grid, arguments, options))


def test_a_launch_reaches_the_kernel() -> None:
    kernel = Kernel()
    launch(kernel, (3, 2), 1, None, BLOCK=8)
    assert kernel.launches == [((3, 2), (1, None), {"BLOCK": 8})]


@pytest.mark.parametrize("grid", [(0,), (4, 0)], ids=str)
def test_an_empty_grid_launches_nothing(grid: tuple[int, ...]) -> None:
    kernel = Kernel()
    launch(kernel, grid)
    assert kernel.launches == []


def test_more_programs_than_an_npu_starts_are_refused() -> None:
    launch(Kernel(), (MAX_PROGRAMS,))
    with pytest.raises(ValueError, match="kernel: a grid of \\(256, 256\\) has 65536 programs; at most 65535"):
        launch(Kernel(), (256, 256))


def test_recorded_launches_are_not_run() -> None:
    kernel = Kernel()
    with recorded_launches() as launches:
        launch(kernel, (2,), 5, WIDTH=3)
    assert kernel.launches == []
    assert [(entry.kernel, entry.grid, entry.arguments, entry.options) for entry in launches] == [
        (kernel, (2,), (5,), {"WIDTH": 3})
    ]
    launch(kernel, (1,))
    assert len(kernel.launches) == 1


def test_powers_of_two_and_quotients() -> None:
    assert [next_power_of_two(number) for number in (0, 1, 2, 3, 8, 9)] == [1, 1, 2, 4, 8, 16]
    assert [previous_power_of_two(number) for number in (0, 1, 2, 3, 8, 9)] == [1, 1, 2, 2, 8, 8]
    assert [ceil_div(number, 4) for number in (0, 1, 4, 5)] == [0, 1, 1, 2]
