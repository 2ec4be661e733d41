# SPDX-License-Identifier: Apache-2.0
"""The form of the table: what a row may say, and how a call is checked against one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from ascend_sim.references import limits
from ascend_sim.references.limits.check import compile_check
from ascend_sim.references.limits.rows import Row
from ascend_sim.settings import SOC_NAMES

Family = limits.Family
RULE = {"id": "rows", "kind": "shape", "what": "input.shape[0]", "max": 4}


def checked(row: dict[str, Any], family: Family = Family.A2, op: str = "npu_rms_norm") -> Any:
    """The compiled check of a made-up row for an operator torch_npu has."""
    entry = Row.model_validate({"ops": [op], "source": "page", **row})
    return compile_check(op, entry, torch._C._get_schema(f"npu::{op}", ""), family)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param({"what": "input.shape["}, "no Python expression", id="syntax"),
        pytest.param({"what": "input.data_ptr()"}, r"\.data_ptr; allowed are", id="attribute"),
        pytest.param({"what": "open('x')"}, "calls open", id="function"),
        pytest.param({"what": "[x for x in input]"}, "ListComp", id="node"),
        pytest.param({"max": None}, "allows everything", id="no condition"),
        pytest.param({"must": "True"}, "without allowed", id="no words"),
        pytest.param({"kind": "colour"}, "Input should be", id="kind"),
        pytest.param({"soc": ["A9"]}, "Input should be", id="family"),
        pytest.param({"most": 4}, "Extra inputs", id="unknown key"),
    ],
)
def test_malformed_rules_are_refused(change: dict[str, Any], message: str) -> None:
    rule = {key: value for key, value in {**RULE, **change}.items() if value is not None}
    with pytest.raises(ValidationError, match=message):
        Row.model_validate({"ops": ["npu_rms_norm"], "source": "page", "rules": [rule]})


def test_malformed_rows_are_refused() -> None:
    with pytest.raises(ValidationError, match="'float15' is no dtype"):
        Row.model_validate({"ops": ["npu_rms_norm"], "source": "page", "dtypes": {"input": ["float15"]}})
    with pytest.raises(ValidationError, match="two rules have the name rows"):
        Row.model_validate({"ops": ["npu_rms_norm"], "source": "page", "rules": [RULE, RULE]})


@pytest.mark.parametrize(
    ("rule", "good", "bad", "message"),
    [
        pytest.param({"in": [2, 4]}, 4, 3, "is 3; the hardware allows 2, 4.", id="in"),
        pytest.param({"multiple": 4}, 8, 6, "is 6; the hardware allows multiples of 4.", id="multiple"),
        pytest.param({"min": 2, "max": 4}, 4, 5, "is 5; the hardware allows 2 to 4.", id="range"),
        pytest.param({"min": 2}, 2, 1, "is 1; the hardware allows at least 2.", id="min"),
        pytest.param({"max": "2 * gamma.shape[0]"}, 6, 7, "is 7; the hardware allows at most 6.", id="expression"),
        pytest.param({"equals": "gamma.shape[0]"}, 3, 4, "is 4; the hardware allows 3 (gamma.shape[0]).", id="equals"),
        pytest.param(
            {"must": "input.shape[0] != 5", "allowed": "no 5", "hint": "Use 6."},
            6,
            5,
            "is 5; the hardware allows no 5. Use 6. Source: page.",
            id="must",
        ),
    ],
)
def test_a_rule_refuses_what_is_past_it_and_says_so(rule: dict[str, Any], good: int, bad: int, message: str) -> None:
    entry = {key: value for key, value in RULE.items() if key != "max"} | rule
    check = checked({"rules": [entry]})
    check(torch.ones(good, 3), torch.ones(3))
    with pytest.raises(RuntimeError) as error:
        check(torch.ones(bad, 3), torch.ones(3))
    assert str(error.value).startswith(f"npu_rms_norm: input.shape[0] {message}")
    assert str(error.value).endswith("Source: page.")


def test_abbreviations_stand_for_expressions_and_may_use_each_other() -> None:
    rule = {"id": "area", "kind": "size", "what": "area", "max": 12}
    check = checked({"let": {"area": "rows * 3", "rows": "input.shape[0]"}, "rules": [rule]})
    check(torch.ones(4, 3), torch.ones(3))
    with pytest.raises(RuntimeError, match="is 15; the hardware allows at most 12"):
        check(torch.ones(5, 3), torch.ones(3))


def test_a_rule_does_not_apply_without_an_argument_it_names() -> None:
    rule = {"id": "smooth", "kind": "shape", "what": "smooth_scales.shape[0]", "equals": "input.shape[-1]"}
    check = checked({"rules": [rule]}, op="npu_dynamic_quant")
    check(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="is 2; the hardware allows 3"):
        check(torch.ones(2, 3), smooth_scales=torch.ones(2))


def test_a_rule_may_ask_for_none() -> None:
    rule = {"id": "none", "kind": "absent", "what": "group_index", "must": "group_index is None", "allowed": "None"}
    check = checked({"rules": [rule]}, op="npu_dynamic_quant")
    check(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="the hardware allows None"):
        check(torch.ones(2, 3), group_index=torch.ones(2))


def test_rules_and_dtypes_may_differ_between_families() -> None:
    row = {
        "soc": ["A2", "A5"],
        "dtypes": {"input": ["float16"]},
        "dtypes_on": {"A5": {"input": ["float32"]}},
        "rules": [{**RULE, "soc": ["A5"]}],
    }
    a2, a5, old = (checked(row, family) for family in (Family.A2, Family.A5, Family.I310P))
    a2(torch.ones(9, 3).half(), torch.ones(3))
    a5(torch.ones(4, 3), torch.ones(3))
    with pytest.raises(RuntimeError, match="input is float32; the hardware allows float16. Source: page"):
        a2(torch.ones(4, 3), torch.ones(3))
    with pytest.raises(RuntimeError, match="is 9; the hardware allows at most 4"):
        a5(torch.ones(9, 3), torch.ones(3))
    with pytest.raises(RuntimeError, match="npu_rms_norm: the SoC family is 310P; the hardware allows A2, A5"):
        old(torch.ones(4, 3).half(), torch.ones(3))


def test_every_soc_name_has_a_family() -> None:
    families = {name: limits.family_of(name) for name in SOC_NAMES}
    assert families["Ascend910B1"] == families["Ascend910B4-1"] == Family.A2
    assert families["Ascend910_9392"] == Family.A3
    assert families["Ascend310P3"] == Family.I310P
    assert limits.family_of("Ascend950PR_9599") == Family.A5
    with pytest.raises(ValueError, match="no known SoC family"):
        limits.family_of("Ascend1")


def test_calls_are_checked_against_the_simulated_devices_family() -> None:
    assert limits.active_family() == Family.A2  # ASCEND_SIM_SOC is Ascend910B1 unless set
    with limits.as_family(Family.A5):
        assert limits.active_family() == Family.A5
