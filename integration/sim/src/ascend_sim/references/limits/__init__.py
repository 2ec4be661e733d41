# SPDX-License-Identifier: Apache-2.0
"""What the hardware refuses: a data table (one YAML file per family in this folder) and the checks that read it.

A row describes what an Atlas A2 or A3 device takes, for one operator or several alike:

- ``ops``: names without namespace and overload; an operator has one row in all files together;
- ``source``: where the row is written down;
- ``dtypes``: allowed dtypes per tensor argument; arguments not named are not checked;
- ``oracle``: arguments that may also be float32 when ``ASCEND_SIM_ORACLE_FP32=1``;
- ``numbers``: named values (head sizes, alignments) that a family's own checks look up with :func:`numbers`.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import torch
import yaml

ORACLE_VARIABLE = "ASCEND_SIM_ORACLE_FP32"
"""Set to 1 to let the attention operators take float32, for comparing tokens with a float32 model; no hardware does."""


@dataclass(frozen=True, slots=True)
class Limits:
    """One operator's row of the table.

    Args:
        source: Where the row comes from.
        dtypes: Allowed dtypes by argument name.
        oracle: Arguments that may also be float32 in oracle mode.
        numbers: Named numbers and lists for the operator's own checks.
    """

    source: str
    dtypes: dict[str, frozenset[torch.dtype]] = field(default_factory=dict)
    oracle: frozenset[str] = frozenset()
    numbers: dict[str, Any] = field(default_factory=dict)


def _row(raw: dict[str, Any]) -> Limits:
    dtypes = {name: frozenset(getattr(torch, d) for d in allowed) for name, allowed in raw.get("dtypes", {}).items()}
    return Limits(raw["source"], dtypes, frozenset(raw.get("oracle", ())), raw.get("numbers", {}))


@functools.cache
def table() -> dict[str, Limits]:
    """The whole table, by operator name without overload: all files of this folder together.

    Raises:
        ValueError: If an operator has two rows.
    """
    files = sorted((f for f in resources.files(__name__).iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name)
    return merge({file.name: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files})


def merge(families: Mapping[str, list[dict[str, Any]]]) -> dict[str, Limits]:
    """Rows by operator from the entries of each file.

    Raises:
        ValueError: If an operator has two rows; the message names it and both files.
    """
    rows: dict[str, Limits] = {}
    origin: dict[str, str] = {}
    for name, entries in families.items():
        for entry in entries:
            for op in entry["ops"]:
                if op in rows:
                    raise ValueError(f"{op} has two rows, in {origin[op]} and {name}; merge them")
                rows[op], origin[op] = _row(entry), name
    return rows


def numbers(op: str) -> dict[str, Any]:
    """The named numbers of ``op``'s row."""
    return table()[op].numbers


def oracle_mode() -> bool:
    """Whether float32 attention is allowed (see :data:`ORACLE_VARIABLE`)."""
    return os.environ.get(ORACLE_VARIABLE, "").lower() in ("1", "true", "yes", "on")


def refuse(op: str, argument: str, given: object, allowed: object, hint: str = "") -> RuntimeError:
    """The error for an argument the hardware does not take; raise what it returns."""
    tail = f" {hint}" if hint else ""
    return RuntimeError(f"{op}: {argument} is {given}; the hardware allows {allowed}.{tail}")


def not_simulated(op: str, argument: str, given: object) -> NotImplementedError:
    """The error for what the hardware takes but no reference covers; raise what it returns."""
    return NotImplementedError(f"{op}: {argument}={given} is not simulated; no reference covers it")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check_dtype(op: str, argument: str, tensor: torch.Tensor, limits: Limits) -> None:
    """Raise if ``tensor``'s dtype is not in ``op``'s row for ``argument``."""
    allowed = limits.dtypes[argument]
    if tensor.dtype in allowed:
        return
    hint = ""
    if tensor.dtype == torch.float32 and argument in limits.oracle:
        if oracle_mode():
            return
        hint = f"Set {ORACLE_VARIABLE}=1 to compare with a float32 model on the simulation."
    raise refuse(op, argument, _name(tensor.dtype), ", ".join(sorted(map(_name, allowed))), hint)


def _positions(kernel: Callable[..., Any]) -> dict[str, int]:
    """The positional index of each parameter of ``kernel``; keyword-only parameters get an unreachable one."""
    positions: dict[str, int] = {}
    for index, parameter in enumerate(inspect.signature(kernel).parameters.values()):
        keyword_only = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        positions[parameter.name] = sys.maxsize if keyword_only else index
    return positions


def guard(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``kernel`` so that tensor arguments are checked against the row of operator ``name``, if there is one."""
    op = name.split("::")[1].split(".")[0]
    limits = table().get(op)
    if limits is None or not limits.dtypes:
        return kernel
    positions = _positions(kernel)
    rows = [(argument, positions.get(argument, sys.maxsize)) for argument in limits.dtypes]
    allowed = limits.dtypes

    @functools.wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for argument, position in rows:
            value = args[position] if position < len(args) else kwargs.get(argument)
            if value is None:
                continue
            for tensor in value if isinstance(value, list) else (value,):
                if tensor.dtype not in allowed[argument]:
                    check_dtype(op, argument, tensor, limits)
        return kernel(*args, **kwargs)

    return checked
