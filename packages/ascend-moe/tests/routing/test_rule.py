"""Rules that cannot be followed."""

import pytest

from ascend_moe.routing import Groups, GroupScore, Rule, Scoring, choose_route


def test_no_expert() -> None:
    with pytest.raises(ValueError, match="top_k is 0; a token needs at least one expert"):
        Rule(0, Scoring.SOFTMAX, renormalize=False)


@pytest.mark.parametrize("kept", [0, 3])
def test_groups_kept(kept: int) -> None:
    with pytest.raises(ValueError, match=f"{kept} of 2 groups of experts are kept; allowed: 1 to 2"):
        Groups(2, kept, GroupScore.MAX)


@pytest.mark.parametrize(
    ("top_k", "groups", "experts", "message"),
    [
        (9, None, 8, "top_k is 9, but there are only 8 experts"),
        (2, Groups(3, 1, GroupScore.MAX), 8, "8 experts do not divide into 3 equal groups"),
        (5, Groups(4, 2, GroupScore.MAX), 8, "top_k is 5, but 2 groups of 2 have only 4 experts"),
        (1, Groups(8, 2, GroupScore.TOP2_SUM), 8, "scored by its two best experts, but 8 groups of 8 have 1"),
    ],
    ids=["few", "uneven", "few-in-groups", "one-in-a-group"],
)
def test_experts(top_k: int, groups: Groups | None, experts: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_route(Rule(top_k, Scoring.SOFTMAX, renormalize=False, groups=groups), experts)
