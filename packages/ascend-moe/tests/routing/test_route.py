"""Both implementations of every rule against the oracle."""

import itertools

import pytest
import torch

from ascend_moe.routing import Groups, GroupScore, Rule, Scoring, choose_route, reference, route_by_table, vendor

from .oracle import route_token, scores_of

RULES = [
    Rule(k, scoring, renormalize, scale, groups)
    for (k, groups), scoring, renormalize, scale in itertools.product(
        [
            (1, None),
            (2, None),
            (4, Groups(4, 2, GroupScore.MAX)),
            (4, Groups(4, 2, GroupScore.TOP2_SUM)),
            (8, Groups(2, 1, GroupScore.TOP2_SUM)),
        ],
        Scoring,
        [False, True],
        [1.0, 2.5],
    )
]


def name(rule: Rule) -> str:
    groups = f"-{rule.groups.kept}of{rule.groups.count}-{rule.groups.score}" if rule.groups else ""
    renormalize = "-renormalize" if rule.renormalize else ""
    return f"{rule.scoring}-k{rule.top_k}{groups}{renormalize}-x{rule.scale}"


@pytest.fixture(scope="module")
def logits() -> torch.Tensor:
    return torch.randn(9, 16, generator=torch.Generator().manual_seed(0)) * 3


@pytest.fixture(scope="module")
def bias() -> torch.Tensor:
    return torch.randn(16, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("rule", RULES, ids=name)
def test_equals_the_oracle(rule: Rule, biased: bool, logits: torch.Tensor, bias: torch.Tensor) -> None:
    groups = (rule.groups.count, rule.groups.kept, str(rule.groups.score)) if rule.groups else None
    expected = [
        route_token(
            row,
            str(rule.scoring),
            rule.top_k,
            renormalize=rule.renormalize,
            scale=rule.scale,
            groups=groups,
            bias=bias.double().tolist() if biased else None,
        )
        for row in logits.double().tolist()
    ]
    weights, experts = choose_route(rule, 16)(rule, logits.npu(), bias.npu() if biased else None)
    assert weights.dtype == torch.float32
    assert experts.dtype == torch.int32
    assert experts.tolist() == [row for _, row in expected]
    torch.testing.assert_close(weights.cpu().double(), torch.tensor([row for row, _ in expected], dtype=torch.float64),
                               rtol=1e-5, atol=1e-7)  # fmt: skip


def test_the_vendors_operator_takes_what_its_page_allows() -> None:
    taken = {name(rule) for rule in RULES if choose_route(rule, 16) is vendor.route}
    assert taken == {
        name(rule)
        for rule in RULES
        if rule.scoring == "softmax" or (rule.scoring == "sigmoid" and rule.renormalize)
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "experts"),
    [
        (Rule(2, Scoring.SOFTMAX, False), 2049),
        # Groups of one to two experts, and 128 groups of 16, which take 32 places each.
        (Rule(2, Scoring.SOFTMAX, False, groups=Groups(8, 2, GroupScore.MAX)), 16),
        (Rule(2, Scoring.SOFTMAX, False, groups=Groups(128, 2, GroupScore.MAX)), 2048),
    ],
    ids=["too-many", "small-groups", "many-groups"],
)
def test_beyond_its_limits_torch_operators_run(rule: Rule, experts: int) -> None:
    assert choose_route(rule, experts) is reference.route


@pytest.mark.parametrize("scoring", ["sigmoid", "sqrtsoftplus"])
def test_scale_is_applied_once_after_renormalisation(scoring: str) -> None:
    # va#9036, va#9692: dropped, or applied twice.
    rule = Rule(2, Scoring(scoring), renormalize=True, scale=2.5)
    logits = torch.tensor([[1.0, -2, 3, 0, 0.5, -1, 2, -3], [0.0, 1, 2, 3, 4, 5, 6, 7]]).npu()
    torch.testing.assert_close(choose_route(rule, 8)(rule, logits).weights.sum(-1).cpu(), torch.tensor([2.5, 2.5]))


def test_scores_that_are_all_zero_give_no_nan() -> None:
    rule = Rule(2, Scoring.SIGMOID, renormalize=True)
    logits = torch.full((1, 8), -200.0).npu()
    assert choose_route(rule, 8)(rule, logits).weights.isfinite().all()


def test_no_tokens() -> None:
    rule = Rule(2, Scoring.SQRT_SOFTPLUS, renormalize=True)
    weights, experts = choose_route(rule, 8)(rule, torch.empty(0, 8).npu())
    assert weights.shape == experts.shape == (0, 2)


def test_experts_from_a_table(logits: torch.Tensor) -> None:
    rule = Rule(2, Scoring.SQRT_SOFTPLUS, renormalize=True, scale=1.5)
    table = torch.tensor([[3, 1], [15, 0], [7, 8]], dtype=torch.int32)
    tokens = torch.tensor([2, 0, 1, 1, 0, 2, 2, 0, 1], dtype=torch.int32)
    weights, experts = route_by_table(rule, logits.npu(), tokens.npu(), table.npu())
    assert experts.tolist() == [table[it].tolist() for it in tokens]
    for row, token, got in zip(logits.double().tolist(), tokens.tolist(), weights.tolist(), strict=True):
        scores = scores_of("sqrtsoftplus", row)
        chosen = [scores[expert] for expert in table[token].tolist()]
        assert got == pytest.approx([1.5 * it / sum(chosen) for it in chosen], rel=1e-5)


def test_a_table_of_another_width_is_refused(logits: torch.Tensor) -> None:
    rule = Rule(2, Scoring.SQRT_SOFTPLUS, renormalize=True)
    with pytest.raises(ValueError, match="the table has 3 experts a token, top_k is 2"):
        route_by_table(rule, logits, torch.zeros(9, dtype=torch.int32), torch.zeros(4, 3, dtype=torch.int32))
