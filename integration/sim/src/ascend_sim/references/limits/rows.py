# SPDX-License-Identifier: Apache-2.0
"""The form of the table's rows, validated when the table is read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import torch
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ascend_sim.references.limits.expressions import names_in, validate
from ascend_sim.references.limits.soc import Family


class Kind(StrEnum):
    """What a limit is about."""

    DTYPE = "dtype"
    RANK = "rank"
    SHAPE = "shape"
    ALIGNMENT = "alignment"
    SIZE = "size"
    LAYOUT = "layout"
    CONTIGUITY = "contiguity"
    FORMAT = "format"
    LENGTH = "length"
    VALUE = "value"
    ABSENT = "absent"


def _dtype(value: Any) -> torch.dtype:
    found = getattr(torch, value, None) if isinstance(value, str) else value
    if not isinstance(found, torch.dtype):
        raise ValueError(f"{value!r} is no dtype of torch")
    return found


def _check(text: str) -> str:
    validate(text)
    return text


Expression = Annotated[str, BeforeValidator(str), AfterValidator(_check)]
"""A Python expression over the operator's arguments (:mod:`ascend_sim.references.limits.expressions`)."""
Dtypes = dict[str, frozenset[Annotated[torch.dtype, BeforeValidator(_dtype)]]]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Rule(_Model):
    """One limit beyond the dtypes.

    A rule holds where ``when`` is true (always, without it), on the families in ``soc`` (all, without it). It does not
    apply to a call in which an argument that it names is None, unless it compares that argument with None itself.

    Args:
        id: Short name, unique in the row; the test's two-sided case has the same name.
        kind: What it is about.
        what: Expression whose value the message shows as given.
        choices: The values ``what`` may have (YAML: ``in``).
        multiple: ``what`` must be a multiple of this expression.
        min: Least value of ``what``, an expression.
        max: Greatest value of ``what``, an expression.
        equals: What ``what`` must equal, an expression.
        must: Any other condition, an expression; needs ``allowed``.
        allowed: What is allowed, in words; follows from the fields above where they say it.
        when: Condition under which the rule applies.
        captured: The rule is for calls that a graph captures only.
        soc: Families the rule is for.
        source: Where it is written down, if not where the row is.
        hint: What to do about a refusal.
    """

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    kind: Kind
    what: Expression
    choices: list[Any] | None = Field(None, alias="in")
    multiple: Expression | None = None
    min: Expression | None = None
    max: Expression | None = None
    equals: Expression | None = None
    must: Expression | None = None
    allowed: str = ""
    when: Expression | None = None
    captured: bool = False
    soc: frozenset[Family] | None = None
    source: str = ""
    hint: str = ""

    @model_validator(mode="after")
    def _says_what_is_allowed(self) -> Rule:
        if not self.conditions():
            raise ValueError(f"rule {self.id} allows everything: give in, multiple, min, max, equals or must")
        if self.must and not self.allowed:
            raise ValueError(f"rule {self.id} has must without allowed, which says in words what it asks for")
        return self

    def conditions(self) -> list[str]:
        """What must be true, as expressions."""
        value = f"({self.what})"
        found = []
        if self.choices is not None:
            found.append(f"{value} in {tuple(self.choices)!r}")
        if self.min is not None:
            found.append(f"{value} >= ({self.min})")
        if self.max is not None:
            found.append(f"{value} <= ({self.max})")
        if self.multiple is not None:
            found.append(f"{value} % ({self.multiple}) == 0")
        if self.equals is not None:
            found.append(f"{value} == ({self.equals})")
        if self.must is not None:
            found.append(f"({self.must})")
        return found

    def bounds(self) -> dict[str, str]:
        """Expressions of the bounds whose values a message shows, by field."""
        fields = {"multiple": self.multiple, "min": self.min, "max": self.max, "equals": self.equals}
        return {name: text for name, text in fields.items() if text is not None}

    def describe(self, bounds: dict[str, object]) -> str:
        """What is allowed, in words, with the bounds' values (or their expressions) filled in."""
        if self.allowed:
            return self.allowed
        parts = []
        if self.choices is not None:
            parts.append(", ".join(map(str, self.choices)))
        if "multiple" in bounds:
            parts.append(f"multiples of {bounds['multiple']}")
        if "min" in bounds and "max" in bounds:
            parts.append(f"{bounds['min']} to {bounds['max']}")
        elif "min" in bounds:
            parts.append(f"at least {bounds['min']}")
        elif "max" in bounds:
            parts.append(f"at most {bounds['max']}")
        if "equals" in bounds:
            value, text = str(bounds["equals"]), self.equals or ""
            parts.append(value if value == text else f"{value} ({text})")
        return ", ".join(parts)


class Row(_Model):
    """What a device takes, for one operator or several alike.

    Args:
        ops: Names without namespace and overload; an operator has one row in all files together.
        soc: Families that have the operator; None if the source does not say. Others refuse it.
        source: Where the row is written down.
        dtypes: Allowed dtypes per tensor argument (of every tensor, for a list); arguments not named are not checked.
        dtypes_on: The same per family, where it differs.
        capture: Whether a graph may capture the operator.
        oracle: Arguments that may also be float32 when ``ASCEND_SIM_ORACLE_FP32=1``.
        host: Tensor arguments that are read by the host, and so lie in host memory; all others lie on the device.
        let: Abbreviations that the rules' expressions use.
        rules: Further limits.
        open: What the source leaves open, in words.
        numbers: Named values (head sizes, alignments) that a family's own checks look up.
    """

    ops: list[str] = Field(min_length=1)
    soc: frozenset[Family] | None = None
    source: str = Field(min_length=1)
    dtypes: Dtypes = {}
    dtypes_on: dict[Family, Dtypes] = {}
    capture: bool = True
    oracle: frozenset[str] = frozenset()
    host: frozenset[str] = frozenset()
    let: dict[str, Expression] = {}
    rules: list[Rule] = []
    open: str = ""
    numbers: dict[str, Any] = {}

    @model_validator(mode="after")
    def _rules_have_their_own_names(self) -> Row:
        ids = [rule.id for rule in self.rules]
        if len(set(ids)) != len(ids):
            raise ValueError(f"row {self.ops}: two rules have the name {next(i for i in ids if ids.count(i) > 1)}")
        return self

    def dtypes_for(self, family: Family) -> Dtypes:
        """Allowed dtypes per argument on ``family``."""
        return {**self.dtypes, **self.dtypes_on.get(family, {})}

    def rules_for(self, family: Family, *, captured: bool = False) -> list[Rule]:
        """The rules that hold on ``family``, for a call that a graph captures or another."""
        found = [rule for rule in self.rules if rule.soc is None or family in rule.soc]
        return [rule for rule in found if captured or not rule.captured]

    def arguments(self) -> set[str]:
        """Every argument the row names."""
        found = {*self.dtypes, *self.oracle, *self.host}
        for dtypes in self.dtypes_on.values():
            found |= set(dtypes)
        texts = [*self.let.values()]
        for rule in self.rules:
            texts += [rule.what, *rule.conditions(), *([rule.when] if rule.when else [])]
        for text in texts:
            found |= names_in(text)
        return found - set(self.let)
