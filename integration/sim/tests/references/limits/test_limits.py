# SPDX-License-Identifier: Apache-2.0
"""Every limit of the table from both sides: what is just allowed runs, what is just beyond is refused and says why.

Rules have cases as data; a rule without them fails. Dtypes and SoC families are taken from the table itself.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ascend_sim.references import limits, registered
from ascend_sim.references.limits.check import compile_check
from ascend_sim.references.limits.rows import Row, Rule

from . import cases

SCHEMAS = {
    s.name.split("::")[1]: s
    for s in sorted(torch._C._jit_get_all_schemas(), key=lambda s: s.overload_name, reverse=True)
    if s.name.startswith(("npu::", "atb::"))
}
"""By operator: the schema without an overload name, if it has one."""
ROWS = {row.ops[0]: row for row in limits.table().values()}
RULES = [(op, rule) for op, row in ROWS.items() for rule in row.rules]
FAMILIES = list(limits.Family)


def rule_id(parameter: Any) -> str:
    return parameter.id if isinstance(parameter, Rule) else str(parameter)


def family_of(row: Row, rule: Rule, given: str | None) -> limits.Family:
    """The family a case is for: as it says, else A2 if the rule holds there, else the rule's first."""
    if given is not None:
        return limits.Family(given)
    possible = rule.soc or row.soc or frozenset(FAMILIES)
    return limits.Family.A2 if limits.Family.A2 in possible else min(possible)


def run(case: cases.Case, family: limits.Family, *, captured: bool = False) -> None:
    """Call the operator on the device; a case that no reference covers must get past the limits all the same."""
    schema = SCHEMAS[case.op]
    operator = getattr(getattr(torch.ops, schema.name.split("::")[0]), case.op)
    with limits.as_family(family):
        if case.runs and not captured:
            operator(**case.built())
        elif case.runs:
            arguments = case.built()
            with torch.npu.graph(torch.npu.NPUGraph()):
                operator(**arguments)
        else:
            compile_check(case.op, limits.table()[case.op], schema, family)(**case.built())


def test_every_rule_has_cases_and_every_case_a_rule() -> None:
    written = {(op, rule) for op, entries in cases.BY_OPERATOR.items() for rule in entries if rule != "call"}
    assert written == {(op, rule.id) for op, rule in RULES}


@pytest.mark.parametrize("op", cases.BY_OPERATOR)
def test_the_call_that_cases_change_is_allowed(op: str) -> None:
    entries = cases.BY_OPERATOR[op]
    row = ROWS[op]
    family = limits.Family.A2 if row.soc is None or limits.Family.A2 in row.soc else min(row.soc)
    run(cases.Case(op, "call", entries["call"], None, entries.get("runs", True)), family)


@pytest.mark.parametrize(("op", "rule"), RULES, ids=rule_id)
def test_just_allowed(op: str, rule: Rule) -> None:
    for case in cases.of(op, rule.id, "allowed"):
        run(case, family_of(ROWS[op], rule, case.soc), captured=rule.captured)


@pytest.mark.parametrize(("op", "rule"), RULES, ids=rule_id)
def test_just_beyond(op: str, rule: Rule) -> None:
    row = ROWS[op]
    for case in cases.of(op, rule.id, "refused"):
        with pytest.raises(RuntimeError) as error:
            run(case, family_of(row, rule, case.soc), captured=rule.captured)
        text = str(error.value)
        assert text.startswith(f"{case.op}: {rule.what} is ")
        assert "; the hardware allows " in text
        assert text.endswith(f"Source: {rule.source or row.source}.")


def stand_in(op: str, row: Row, family: limits.Family) -> dict[str, Any]:
    """Arguments of the right types and dtypes, and of any shape: enough to get to the checks of dtypes."""
    allowed = row.dtypes_for(family)
    given: dict[str, Any] = {}
    for argument in SCHEMAS[op].arguments:
        kind = str(argument.type)
        if "Tensor" in kind and (argument.name in allowed or not argument.has_default_value()):
            dtype = min(allowed.get(argument.name, [torch.float16]), key=str)
            tensor = torch.empty((16,) * 4, dtype=dtype)
            given[argument.name] = [tensor] if "List" in kind else tensor
        elif not argument.has_default_value():
            given[argument.name] = [1] if "List" in kind else "BSND" if kind == "str" else 1
    return given


# A row may serve several operators, of which not all have every argument.
DTYPES = [
    (op, argument)
    for op, row in limits.table().items()
    for argument in sorted(row.dtypes)
    if any(it.name == argument and "Tensor" in str(it.type) for it in SCHEMAS[op].arguments)
]
TRIED = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.int8,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
)


@pytest.mark.parametrize(("op", "argument"), DTYPES)
def test_dtypes(op: str, argument: str) -> None:
    """On every family: a dtype of the row is not what a call is refused for, any other is."""
    row = limits.table()[op]
    for family in sorted(row.soc or FAMILIES):
        check = compile_check(op, row, SCHEMAS[op], family)
        with limits.as_family(family):
            given = stand_in(op, row, family)
            for dtype in TRIED:
                changed = torch.empty((16,) * 4, dtype=dtype)
                arguments = {**given, argument: [changed] if isinstance(given[argument], list) else changed}
                message = refusal(check, arguments)
                refused = message.startswith(f"{op}: {argument} is {str(dtype).removeprefix('torch.')}; ")
                assert refused != (dtype in row.dtypes_for(family)[argument]), message


def refusal(check: Any, arguments: dict[str, Any]) -> str:
    """What a check says against a call; stand-ins may not fit its rules, which come after the dtypes."""
    try:
        check(**arguments)
    except (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError) as error:
        return str(error)
    return ""


SOCS = [op for op, row in limits.table().items() if row.soc is not None]


@pytest.mark.parametrize("op", SOCS)
def test_families(op: str) -> None:
    """A family without the operator refuses every call and says which have it; the others do not."""
    row = limits.table()[op]
    assert row.soc is not None
    for family in FAMILIES:
        message = refusal(compile_check(op, row, SCHEMAS[op], family), stand_in(op, row, family))
        refused = message.startswith(f"{op}: the SoC family is {family}; the hardware allows ")
        assert refused == (family not in row.soc), message


NOT_CAPTURED = [op for op, row in limits.table().items() if not row.capture]


@pytest.mark.parametrize("op", NOT_CAPTURED)
def test_operators_that_graphs_cannot_hold(op: str) -> None:
    """They are refused in a capture, whatever their arguments, and not outside."""
    row, family = limits.table()[op], limits.Family.A2
    messages = [
        refusal(compile_check(op, row, SCHEMAS[op], family, captured=captured), stand_in(op, row, family))
        for captured in (False, True)
    ]
    refused = [message.startswith(f"{op}: the call is captured by a graph; ") for message in messages]
    assert refused == [False, True]


def test_every_operator_with_a_row_is_guarded() -> None:
    references = {name.split("::")[1].split(".")[0]: entry for name, entry in registered().items()}
    for op in set(limits.table()) & set(references):
        assert references[op].kernel.__wrapped__ is not references[op].kernel
