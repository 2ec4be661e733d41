"""Placements: how many slots, the first one, and what is refused."""

import numpy as np
import pytest

from ascend_moe.eplb import InvalidPlacementError, Problem, check, initial_placement, slots_per_rank


def test_initial_placement_goes_through_the_experts_in_order_again_and_again() -> None:
    assert initial_placement(2, 4, 3, 2).tolist() == [[[0, 1], [2, 3], [0, 1]]] * 2


def test_every_initial_placement_is_valid() -> None:
    for experts, ranks, redundant in [(2, 2, 2), (8, 4, 8), (256, 32, 32), (3, 5, 12), (7, 7, 0), (4, 3, 8)]:
        placement = initial_placement(1, experts, ranks, redundant)
        assert check(placement, placement, experts).tolist() == [0]


@pytest.mark.parametrize(
    ("experts", "redundant", "ranks", "message"),
    [
        (256, 5, 8, "256 experts and 5 redundant ones are 261 physical experts, .* 8 ranks; 3 more"),
        (2, 4, 2, "3 slots on a rank are more than the 2 experts"),
        (8, -1, 4, "-1 redundant ones"),
        (8, 0, 0, "0 ranks"),
    ],
    ids=["not-divisible", "more-slots-than-experts", "negative", "no-ranks"],
)
def test_numbers_that_do_not_fit_are_named(experts: int, redundant: int, ranks: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        slots_per_rank(experts, redundant, ranks)


def test_ranks_that_do_not_divide_among_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="16 ranks do not divide evenly among 3 nodes"):
        Problem(np.ones((1, 16)), initial_placement(1, 16, 16), nodes=3)


@pytest.mark.parametrize(
    ("loads", "message"),
    [
        ([[1.0, -1.0]], "layer 0 expert 1 is not"),
        ([[np.nan, 1.0]], "layer 0 expert 0 is not"),
        ([1.0, 1.0], "2 dimensions"),
        ([[1.0, 1.0], [1.0, 1.0]], "the placement has 1 layers, the loads have 2"),
    ],
    ids=["negative", "nan", "one-dimension", "layers"],
)
def test_loads_that_mean_nothing_are_refused(loads: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Problem(np.array(loads), np.array([[[0], [1]]]))


BEFORE = np.array([[[0, 1], [2, 0]], [[0, 1], [2, 0]]])


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ([[[0, 1], [2, 0]], [[0, 1], [2, -1]]], "layer 1, rank 1, slot 1 holds expert -1; there are experts 0 to 2"),
        ([[[0, 1], [2, 0]], [[0, 1], [2, 3]]], "layer 1, rank 1, slot 1 holds expert 3"),
        ([[[0, 1], [2, 2]], [[0, 1], [2, 0]]], "layer 0, rank 1 holds expert 2 twice"),
        ([[[0, 1], [1, 0]], [[0, 1], [2, 0]]], "layer 0 has expert 2 on none of its 2 ranks"),
        ([[[1, 0], [2, 0]], [[0, 1], [2, 0]]], "layer 0, rank 0 keeps expert 1 but moves it from slot 1 to slot 0"),
        ([[[0, 1, 2], [2, 0, 1]]] * 2, "the placement is .*3.*, the one it replaces .*2.*"),
        ([[[0.0, 1.0], [2.0, 0.0]]] * 2, "holds integers, this one float64"),
    ],
    ids=["incomplete", "unknown-expert", "twice-on-a-rank", "missing", "moved-for-nothing", "shape", "floats"],
)
def test_check_names_what_is_wrong(after: list, message: str) -> None:
    with pytest.raises(InvalidPlacementError, match=message):
        check(np.array(after), BEFORE, 3)


def test_check_counts_the_weights_that_move() -> None:
    after = np.array([[[0, 2], [2, 1]], [[0, 1], [2, 0]]])
    assert check(after, BEFORE, 3).tolist() == [2, 0]
