"""The choice of the exchange, case by case."""

import pytest

from ascend_moe.comm import Method, Step, choose_method

GATHER, TO_ALL, FUSED = Method.ALL_GATHER, Method.ALL_TO_ALL, Method.FUSED_DISPATCH


def step(soc: str, **changes: object) -> Step:
    usual = {"ranks": 16, "local_experts": 16, "top_k": 8, "tokens": 64, "capacity": 512, "half_precision": True}
    return Step(soc=soc, **{**usual, **changes})


@pytest.mark.parametrize(
    ("soc", "changes", "method"),
    [
        ("A2", {}, FUSED),
        ("A2", {"local_experts": 24}, FUSED),
        ("A2", {"local_experts": 25}, GATHER),
        ("A2", {"ranks": 15}, GATHER),
        ("A2", {"tokens": 513}, GATHER),
        ("A2", {"captured": True}, FUSED),
        ("A3", {"tokens": 512}, FUSED),
        ("A3", {"tokens": 513}, TO_ALL),
        ("A3", {"tokens": 513, "captured": True}, GATHER),
        ("A3", {"half_precision": False}, TO_ALL),
        ("A3", {"ranks": 2}, FUSED),
        ("A5", {}, FUSED),
        ("A5", {"tokens": 513}, TO_ALL),
        ("A5", {"tokens": 513, "ranks": 8}, GATHER),
        ("A5", {"tokens": 513, "ranks": 9}, TO_ALL),
        ("310P", {}, GATHER),
        *((soc, {"ranks": 1}, GATHER) for soc in ("A2", "A3", "A5", "310P")),
    ],
    ids=str,
)
def test_choice(soc: str, changes: dict[str, object], method: Method) -> None:
    assert choose_method(step(soc, **changes)) is method


@pytest.mark.parametrize(
    ("wanted", "changes", "method"),
    [
        (GATHER, {}, GATHER),
        (TO_ALL, {}, TO_ALL),
        (TO_ALL, {"captured": True}, GATHER),
        (FUSED, {"captured": True}, FUSED),
        (FUSED, {"tokens": 513}, TO_ALL),
        (FUSED, {"tokens": 513, "captured": True}, GATHER),
        (FUSED, {"half_precision": False}, TO_ALL),
        (TO_ALL, {"ranks": 1}, GATHER),
    ],
    ids=str,
)
@pytest.mark.parametrize("soc", ["A2", "310P"])
def test_what_a_user_wants(soc: str, wanted: Method, changes: dict[str, object], method: Method) -> None:
    assert choose_method(step(soc, **changes), wanted) is method
