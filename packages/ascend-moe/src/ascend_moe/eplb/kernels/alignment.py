"""Which rank takes which set of experts, and which slot each expert, so that the fewest weights move."""

import numpy as np

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.kernels.compiled import compiled


@compiled
def assign(cost: Floats) -> Integers:
    """Return the column of each row in an assignment of least cost; `cost` is a square matrix.

    The Hungarian method with potentials and shortest augmenting paths (Kuhn 1955, Jonker and Volgenant 1987), in
    O(n³).
    """
    size = cost.shape[0]
    row_price, column_price = np.zeros(size), np.zeros(size + 1)
    row_of = np.full(size + 1, -1, np.int64)  # column `size` is a helper that holds the row being added
    for row in range(size):
        row_of[size], column = row, size
        distance = np.full(size, np.inf)
        came_from = np.full(size, size, np.int64)
        done = np.zeros(size + 1, np.bool_)
        while row_of[column] >= 0:
            done[column] = True
            current, step, following = row_of[column], np.inf, -1
            for it in range(size):
                if done[it]:
                    continue
                reduced = cost[current, it] - row_price[current] - column_price[it]
                if reduced < distance[it]:
                    distance[it], came_from[it] = reduced, column
                if distance[it] < step:
                    step, following = distance[it], it
            for it in range(size + 1):
                if done[it]:
                    row_price[row_of[it]] += step
                    column_price[it] -= step
                elif it < size:
                    distance[it] -= step
            column = following
        while column != size:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    columns = np.empty(size, np.int64)
    for column in range(size):
        columns[row_of[column]] = column
    return columns


@compiled
def keep_slots(place: Integers, before: Integers) -> Integers:
    """Reorder the slots of every rank: an expert that its rank held before stays in its slot, the others fill up."""
    ranks, slots = place.shape
    arranged = np.full((ranks, slots), -1, np.int64)
    for rank in range(ranks):
        fresh = np.ones(slots, np.bool_)
        for slot in range(slots):
            for old in range(slots):
                if place[rank, slot] == before[rank, old]:
                    arranged[rank, old] = place[rank, slot]
                    fresh[slot] = False
                    break
        free = 0
        for slot in range(slots):
            if fresh[slot]:
                while arranged[rank, free] >= 0:
                    free += 1
                arranged[rank, free] = place[rank, slot]
    return arranged


@compiled
def settle(place: Integers, before: Integers, experts: int) -> Integers:
    """Return `place` with ranks and slots permuted such that the fewest weights move from `before`.

    Ranks are alike, so that the load is the same however the sets of experts are dealt to them; an assignment of
    largest overlap moves the fewest weights. Of equal ones, a set stays on its rank.
    """
    ranks, slots = place.shape
    holds = np.zeros((experts, ranks), np.bool_)
    for rank in range(ranks):
        for slot in range(slots):
            holds[before[rank, slot], rank] = True
    cost = np.zeros((ranks, ranks))
    for row in range(ranks):
        for column in range(ranks):
            for slot in range(slots):
                if holds[place[row, slot], column]:
                    cost[row, column] -= ranks + 1
        cost[row, row] -= 1
    columns = assign(cost)
    dealt = np.empty_like(place)
    for row in range(ranks):
        for slot in range(slots):
            dealt[columns[row], slot] = place[row, slot]
    return keep_slots(dealt, before)
