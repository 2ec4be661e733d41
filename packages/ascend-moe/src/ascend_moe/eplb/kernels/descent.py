"""Local search on one layer: exchanges of experts between ranks, changes of replication, and kicks out of local optima.

The value of a placement is the sum over the samples of the largest rank load; among equal values, the smaller sum of
squared rank loads is better, so that the search goes on while several ranks share the maximum.
"""

import numpy as np
from numpy.typing import NDArray

from ascend_moe.eplb.arrays import Booleans, Floats, Integers
from ascend_moe.eplb.kernels.basics import draw, heavy_first, largest_loads, unit_loads
from ascend_moe.eplb.kernels.compiled import compiled
from ascend_moe.eplb.kernels.greedy import loads_of


@compiled
def counted(place: Integers, experts: int) -> tuple[Integers, Booleans]:
    """Return (count [experts], holds [experts, ranks]) of a placement."""
    count = np.zeros(experts, np.int64)
    holds = np.zeros((experts, place.shape[0]), np.bool_)
    for rank in range(place.shape[0]):
        for slot in range(place.shape[1]):
            expert = place[rank, slot]
            count[expert] += 1
            holds[expert, rank] = True
    return count, holds


@compiled
def value_of(place: Integers, weight: Floats) -> float:
    """Return the sum over the samples of the largest rank load."""
    count, _ = counted(place, weight.shape[1])
    return largest_loads(loads_of(place, unit_loads(weight, count)))


@compiled
def three_largest(load: Floats) -> Integers:
    """Return the ranks with the three largest loads in each sample, [samples, 3]; -1 where there are fewer ranks."""
    samples, ranks = load.shape
    top = np.full((samples, 3), -1, np.int64)
    for t in range(samples):
        for rank in range(ranks):
            new = rank
            for k in range(3):
                if top[t, k] < 0 or load[t, new] > load[t, top[t, k]]:
                    top[t, k], new = new, top[t, k]
                if new < 0:
                    break
    return top


@compiled
def rest_of(load: Floats, top: Integers, one: int, other: int) -> Floats:
    """Return the largest load in each sample among the ranks that are neither `one` nor `other`, [samples]."""
    rest = np.zeros(load.shape[0])
    for t in range(load.shape[0]):
        for k in range(3):
            rank = top[t, k]
            if rank >= 0 and rank != one and rank != other:
                rest[t] = load[t, rank]
                break
    return rest


@compiled
def exchange(place: Integers, holds: Booleans, unit: Floats, load: Floats, top: Integers, scale: float) -> bool:
    """Exchange two experts of a rank with the largest load and another rank if that improves; return whether it did.

    Ranks are tried from the one with least load; of the exchanges with the first that allows an improvement, the best.
    """
    samples, ranks = load.shape
    slots = place.shape[1]
    now, lightness = largest_loads(load), np.zeros(ranks)
    for t in range(samples):
        for rank in range(ranks):
            lightness[rank] -= load[t, rank]
    light_first = heavy_first(lightness)
    for sample in range(samples):
        hot = top[sample, 0]
        for position in range(ranks):
            other = light_first[position]
            if other == hot:
                continue
            rest = rest_of(load, top, hot, other)
            best, best_squares, give, take = now, -1e-12 * scale * scale, -1, -1
            for i in range(slots):
                leaving = place[hot, i]
                if holds[leaving, other]:
                    continue
                for j in range(slots):
                    coming = place[other, j]
                    if holds[coming, hot]:
                        continue
                    value, squares = 0.0, 0.0
                    for t in range(samples):
                        change = unit[t, coming] - unit[t, leaving]
                        hot_load, other_load = load[t, hot] + change, load[t, other] - change
                        value += max(hot_load, other_load, rest[t])
                        squares += 2 * change * (load[t, hot] - load[t, other] + change)
                    margin = 1e-12 * scale
                    if value < best - margin or (value <= best + margin and squares < best_squares):
                        best, best_squares, give, take = value, squares, i, j
            if give >= 0:
                leaving, coming = place[hot, give], place[other, take]
                place[hot, give], place[other, take] = coming, leaving
                holds[leaving, hot], holds[leaving, other] = False, True
                holds[coming, hot], holds[coming, other] = True, False
                for t in range(samples):
                    change = unit[t, coming] - unit[t, leaving]
                    load[t, hot] += change
                    load[t, other] -= change
                return True
    return False


@compiled
def with_other_replica(
    load: Floats, weight: Floats, unit: Floats, count: Integers, holds: Booleans, rank: int, old: int, new: int
) -> tuple[float, float]:
    """Return (value, change of squares) if `rank` held a replica of `new` in the place of its replica of `old`."""
    value, squares = 0.0, 0.0
    for t in range(load.shape[0]):
        more = weight[t, old] / (count[old] - 1) - unit[t, old]
        fresh = weight[t, new] / (count[new] + 1)
        less = fresh - unit[t, new]
        largest = 0.0
        for other in range(load.shape[1]):
            amount = load[t, other]
            if other == rank:
                amount += fresh - unit[t, old]
            else:
                if holds[old, other]:
                    amount += more
                if holds[new, other]:
                    amount += less
            squares += amount * amount - load[t, other] * load[t, other]
            largest = max(largest, amount)
        value += largest
    return value, squares


@compiled
def replicate(
    place: Integers,
    count: Integers,
    holds: Booleans,
    weight: Floats,
    unit: Floats,
    load: Floats,
    top: Integers,
    scale: float,
) -> bool:
    """Replace one replica of a replicated expert by one of another if that improves; return whether it did.

    Tried are replicas that lighten a rank with the largest load: of an expert it holds, on another rank, or of any
    expert in the place of one of its own. The best of these is taken. `load` is not updated.
    """
    samples, ranks = load.shape
    experts, slots = weight.shape[1], place.shape[1]
    now = largest_loads(load)
    margin = 1e-12 * scale
    best, best_squares, at_rank, at_slot, chosen = now, -margin * scale, -1, -1, -1
    for sample in range(samples):
        hot = top[sample, 0]
        for rank in range(ranks):
            for slot in range(slots):
                old = place[rank, slot]
                if count[old] < 2:
                    continue
                for candidate in range(experts if rank == hot else slots):
                    new = candidate if rank == hot else place[hot, candidate]
                    if holds[new, rank] or count[new] >= ranks:
                        continue
                    value, squares = with_other_replica(load, weight, unit, count, holds, rank, old, new)
                    if value < best - margin or (value <= best + margin and squares < best_squares):
                        best, best_squares, at_rank, at_slot, chosen = value, squares, rank, slot, new
    if chosen < 0:
        return False
    replace(place, count, holds, weight, unit, at_rank, at_slot, chosen)
    return True


@compiled
def replace(
    place: Integers, count: Integers, holds: Booleans, weight: Floats, unit: Floats, rank: int, slot: int, new: int
) -> None:
    """Put a replica of `new` into a slot; all of the state but the loads of ranks follows."""
    old = place[rank, slot]
    place[rank, slot] = new
    count[old] -= 1
    count[new] += 1
    holds[old, rank], holds[new, rank] = False, True
    for t in range(weight.shape[0]):
        unit[t, old] = weight[t, old] / count[old]
        unit[t, new] = weight[t, new] / count[new]


@compiled
def descend(place: Integers, weight: Floats, steps: int, replications: int) -> float:
    """Improve `place` in place until no exchange and no replication helps, or `steps` are done; return the value.

    `replications` limits how often replication is changed.
    """
    count, holds = counted(place, weight.shape[1])
    unit = unit_loads(weight, count)
    load = loads_of(place, unit)
    scale = largest_loads(load)
    for _ in range(steps if scale > 0 else 0):
        top = three_largest(load)
        if exchange(place, holds, unit, load, top, scale):
            continue
        if replications == 0 or not replicate(place, count, holds, weight, unit, load, top, scale):
            break
        replications -= 1
        load = loads_of(place, unit)
    return largest_loads(loads_of(place, unit))


@compiled
def kick(
    place: Integers, count: Integers, holds: Booleans, weight: Floats, unit: Floats, state: NDArray[np.uint64]
) -> None:
    """Make one random valid change: of replication in every second case, where there are replicas, else an exchange."""
    ranks, slots = place.shape
    experts = weight.shape[1]
    for _ in range(20):
        rank, slot = draw(state, ranks), draw(state, slots)
        old = place[rank, slot]
        if ranks == 1 or (count[old] > 1 and draw(state, 2) == 0):
            new = draw(state, experts)
            if count[old] > 1 and count[new] < ranks and not holds[new, rank]:
                replace(place, count, holds, weight, unit, rank, slot, new)
                return
        else:
            other, there = draw(state, ranks), draw(state, slots)
            coming = place[other, there]
            if other != rank and not holds[old, other] and not holds[coming, rank]:
                place[rank, slot], place[other, there] = coming, old
                holds[old, rank], holds[old, other] = False, True
                holds[coming, rank], holds[coming, other] = True, False
                return


@compiled
def search(place: Integers, weight: Floats, rounds: int, target: float, seed: int) -> float:
    """Iterated local search (Lourenço, Martin, Stützle 2003) from `place`, which is improved in place.

    Each round kicks a placement one to four times and descends; the result is where the next round goes on if it is at
    most 2 % worse than the best, and every eighth round goes on from the best. Ends after `rounds` or with a value of
    at most `target`. Returns the value.
    """
    state = np.zeros(1, np.uint64)
    state[0] = seed
    draw(state, 1)
    steps = 4 * place.size + 64
    best = descend(place, weight, steps, place.size)
    current = place.copy()
    for turn in range(rounds):
        if best <= target:
            break
        trial = place.copy() if turn % 8 == 0 else current.copy()
        count, holds = counted(trial, weight.shape[1])
        unit = unit_loads(weight, count)
        for _kick in range(1 + draw(state, 4)):
            kick(trial, count, holds, weight, unit, state)
        value = descend(trial, weight, steps, place.size)
        if value <= best * 1.02:
            current = trial
        if value <= best * (1 + 1e-12):
            best = min(value, best)
            for rank in range(place.shape[0]):
                for slot in range(place.shape[1]):
                    place[rank, slot] = trial[rank, slot]
    return best
