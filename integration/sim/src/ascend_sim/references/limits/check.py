# SPDX-License-Identifier: Apache-2.0
"""Checking a call against its operator's row.

A row becomes one Python function of the operator's arguments, made at the first call: straight-line conditions cost a
fraction of a microsecond each, and a decode step makes hundreds of calls.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ascend_sim.references.limits import expressions
from ascend_sim.references.limits.errors import ORACLE_VARIABLE, oracle_mode, refuse
from ascend_sim.references.limits.rows import Kind, Row, Rule
from ascend_sim.references.limits.soc import Family, active_family
from ascend_sim.references.limits.table import table

_Check = Callable[..., None]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _shown(value: object) -> object:
    if isinstance(value, torch.dtype):
        return _name(value)
    if isinstance(value, torch.Size):
        return list(value)
    if isinstance(value, (tuple, list)):
        return [_shown(item) for item in value]
    return repr(value) if isinstance(value, str) else value


def check_dtype(
    op: str, argument: str, tensor: torch.Tensor, row: Row, allowed: frozenset[torch.dtype] | None = None
) -> None:
    """Raise if ``tensor``'s dtype is not in ``op``'s row for ``argument``."""
    if allowed is None:
        allowed = row.dtypes_for(active_family())[argument]
    if tensor.dtype in allowed:
        return
    hint = ""
    if tensor.dtype == torch.float32 and argument in row.oracle:
        if oracle_mode():
            return
        hint = f"Set {ORACLE_VARIABLE}=1 to compare with a float32 model on the simulation. "
    names = ", ".join(sorted(map(_name, allowed))) or "no tensor here"
    raise refuse(op, argument, _name(tensor.dtype), names, f"{hint}Source: {row.source}.")


class _Checker:
    """Raises for what the generated function finds."""

    def __init__(self, op: str, row: Row, family: Family, captured: bool) -> None:
        self.op, self.row, self.family = op, row, family
        self.dtypes = row.dtypes_for(family)
        self.rules = row.rules_for(family, captured=captured)

    def unsupported(self) -> None:
        have = ", ".join(sorted(self.row.soc or ()))
        raise refuse(self.op, "the SoC family", self.family, have, f"Source: {self.row.source}.")

    def not_capturable(self) -> None:
        hint = f"Call it outside the graph. Source: {self.row.source}."
        raise refuse(self.op, "the call", "captured by a graph", "calls outside graphs only", hint)

    def dtype(self, argument: str, value: Any) -> None:
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            check_dtype(self.op, argument, tensor, self.row, self.dtypes[argument])

    def rule(self, index: int, given: object, bounds: Mapping[str, object], tensors: Mapping[str, Any]) -> None:
        rule = self.rules[index]
        if rule.kind is Kind.DTYPE and oracle_mode() and self._single(tensors):
            return
        shown = {name: _shown(value) for name, value in bounds.items()}
        hint = f"{rule.hint} " if rule.hint else ""
        source = rule.source or self.row.source
        raise refuse(self.op, rule.what, _shown(given), rule.describe(shown), f"{hint}Source: {source}.")

    def _single(self, tensors: Mapping[str, Any]) -> bool:
        """Whether an argument that the oracle mode lets be float32 is float32."""
        given = (tensors.get(name) for name in self.row.oracle)
        return any(isinstance(t, torch.Tensor) and t.dtype == torch.float32 for t in given)


def _condition(rule: Rule, let: Mapping[str, str], arguments: set[str]) -> str | None:
    """When the rule is broken, as an expression; None if it names an argument this operator does not have."""
    must = [expressions.inline(text, let) for text in rule.conditions()]
    when = expressions.inline(rule.when, let) if rule.when else None
    texts = [*must, expressions.inline(rule.what, let), *([when] if when else [])]
    names = set().union(*map(expressions.names_in, texts))
    if not names <= arguments:
        return None
    optional = names - set().union(*map(expressions.compared_with_none, texts))
    given = [f"{name} is not None" for name in sorted(optional)]
    return " and ".join([*given, *([f"({when})"] if when else []), f"not ({' and '.join(must)})"])


def _signature(schema: Any) -> tuple[str, dict[str, Any]]:
    """The operator's parameters as Python source, and the default values it refers to."""
    parts, values, keywords = [], {}, False
    for argument in schema.arguments:
        if argument.kwarg_only and not keywords:
            keywords = True
            parts.append("*")
        default = ""
        if argument.has_default_value():
            values[f"_default_{argument.name}"] = argument.default_value
            default = f"=_default_{argument.name}"
        parts.append(argument.name + default)
    return ", ".join(parts), values


def compile_check(op: str, row: Row, schema: Any, family: Family, *, captured: bool = False) -> _Check:
    """A function of the operator's arguments that raises for what ``family`` refuses.

    Args:
        op: The operator's name, for messages.
        row: Its row.
        schema: Its schema, whose parameter names and defaults the function has.
        family: The SoC family.
        captured: For calls that a graph captures.
    """
    checker = _Checker(op, row, family, captured)
    parameters, values = _signature(schema)
    arguments = {a.name for a in schema.arguments}
    tensor_arguments = {a.name for a in schema.arguments if "Tensor" in str(a.type)}
    lists = {a.name for a in schema.arguments if "List" in str(a.type)}
    lines = []
    if row.soc is not None and family not in row.soc:
        lines.append("_check.unsupported()")
    if captured and not row.capture:
        lines.append("_check.not_capturable()")
    for name in checker.dtypes:
        if name not in tensor_arguments:
            continue
        if name in lists:
            lines.append(f"if {name} is not None: _check.dtype({name!r}, {name})")
        else:
            values[f"_dtypes_{name}"] = checker.dtypes[name]
            lines.append(
                f"if {name} is not None and {name}.dtype not in _dtypes_{name}: _check.dtype({name!r}, {name})"
            )
    for index, rule in enumerate(checker.rules):
        broken = _condition(rule, row.let, arguments)
        if broken is None:
            continue
        bounds = ", ".join(f"{n!r}: {expressions.inline(t, row.let)}" for n, t in rule.bounds().items())
        tensors = ", ".join(f"{n!r}: {n}" for n in sorted(row.oracle & arguments))
        what = expressions.inline(rule.what, row.let)
        lines.append(f"if {broken}: _check.rule({index}, {what}, {{{bounds}}}, {{{tensors}}})")
    source = f"def check({parameters}):\n " + "\n ".join(lines or ["pass"])
    namespace: dict[str, Any] = {**expressions.FUNCTIONS, **expressions.DTYPES, **values, "_check": checker}
    exec(compile(source, f"<limits of {op}>", "exec"), namespace)  # the table's own expressions, validated when read
    check: _Check = namespace["check"]
    return check


@functools.cache
def _check_of(name: str, family: Family, captured: bool) -> _Check | None:
    """The check of an operator by its qualified name with overload; None without a row."""
    operator, _, overload = name.partition(".")
    op = operator.split("::")[1]
    row = table().get(op)
    if row is None:
        return None
    return compile_check(op, row, torch._C._get_schema(operator, overload), family, captured=captured)


@functools.cache
def _keywords(name: str) -> tuple[str, ...]:
    """The arguments of an operator that can be given by name only; they are its last."""
    operator, _, overload = name.partition(".")
    return tuple(
        argument.name for argument in torch._C._get_schema(operator, overload).arguments if argument.kwarg_only
    )


def check_call(name: str, arguments: tuple[Any, ...], captured: bool) -> None:
    """Check a call against its operator's row, if there is one, without running it.

    Args:
        name: Qualified name with overload.
        arguments: A value for every argument of the schema, in its order.
        captured: A graph captures the call.
    """
    check = _check_of(name, active_family(), captured)
    if check is not None:
        keywords = _keywords(name)
        positional = len(arguments) - len(keywords)
        check(*arguments[:positional], **dict(zip(keywords, arguments[positional:], strict=True)))


def guard(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``kernel`` so that calls are checked against the row of operator ``name``, if there is one.

    Args:
        name: Qualified name with overload; torch_npu must have defined it by the first call.
        kernel: The reference.
    """

    @functools.wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check = _check_of(name, active_family(), False)
        if check is not None:
            check(*args, **kwargs)
        return kernel(*args, **kwargs)

    return checked
