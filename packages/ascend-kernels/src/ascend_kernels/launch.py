"""Limits of a kernel launch."""

from __future__ import annotations

from dataclasses import dataclass

MAX_PROGRAMS = 65535
"""Largest product of grid dimensions on Ascend; more work is covered by a grid-stride loop."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A one-dimensional launch.

    Attributes:
        programs: size of the grid; 0 means that nothing is launched.
        block: elements that a program handles at a time, a power of two.
    """

    programs: int
    block: int


def next_power_of_two(number: int) -> int:
    """The smallest power of two that is not below ``number``; 1 for numbers up to 1."""
    return 1 << max(number - 1, 0).bit_length()
