"""What the other loops share, compiled once: numpy's sorting and array expressions take long to compile."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.kernels.compiled import compiled


@compiled
def heavy_first(values: Floats) -> Integers:
    """Return the order that sorts `values` from the largest, equal ones from the first, as numpy's stable argsort."""
    order = np.empty(values.size, np.int64)
    for item in range(values.size):
        order[item] = item
    other = order.copy()
    width = 1
    while width < values.size:  # merge sort, from the bottom up
        for start in range(0, values.size, 2 * width):
            left, right = start, min(start + width, values.size)
            middle, end = right, min(start + 2 * width, values.size)
            for place in range(start, end):
                if left < middle and (right >= end or values[order[left]] >= values[order[right]]):
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@compiled
def total(values: Floats | Integers) -> Any:
    """Return the sum of `values`, one dimension, of their dtype."""
    result = values.dtype.type(0)
    for item in range(values.size):
        result += values[item]
    return result


@compiled
def unit_loads(weight: Floats, count: Integers) -> Floats:
    """Return the load of one replica of each expert, [samples, experts]."""
    unit = np.empty(weight.shape)
    for t in range(weight.shape[0]):
        for expert in range(weight.shape[1]):
            unit[t, expert] = weight[t, expert] / count[expert]
    return unit


@compiled
def largest_loads(load: Floats) -> float:
    """Return the sum over the samples of the largest rank load; `load` is [samples, ranks]."""
    result = 0.0
    for t in range(load.shape[0]):
        largest = 0.0
        for rank in range(load.shape[1]):
            largest = max(largest, load[t, rank])
        result += largest
    return result


@compiled
def draw(state: NDArray[np.uint64], below: int) -> int:
    """Return a number from 0 to `below` - 1 and advance `state`, one uint64.

    A linear congruential generator with Knuth's multiplier (MMIX), of which the upper half is used: the same numbers
    with every version of numpy and numba.
    """
    state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return int((state[0] >> np.uint64(33)) % np.uint64(below))
