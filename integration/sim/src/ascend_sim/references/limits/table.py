# SPDX-License-Identifier: Apache-2.0
"""The table: all files of this folder together."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any

import yaml

from ascend_sim.references.limits.rows import Row

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML was built with it


@functools.cache
def files() -> dict[str, list[dict[str, Any]]]:
    """The entries of each file, by its name, as they are written."""
    found = sorted(
        (f for f in resources.files(__package__).iterdir() if f.name.endswith(".yaml")), key=lambda f: f.name
    )
    return {file.name: yaml.load(file.read_text(encoding="utf-8"), _Loader) for file in found}


@functools.cache
def table() -> dict[str, Row]:
    """The whole table, by operator name without overload.

    Raises:
        ValueError: If an operator has two rows, or a row is not of the form of :class:`Row`.
    """
    return merge(files())


def merge(families: Mapping[str, list[dict[str, Any]]]) -> dict[str, Row]:
    """Rows by operator from the entries of each file.

    Raises:
        ValueError: If an operator has two rows; the message names it and both files. Or if a row is malformed.
    """
    rows: dict[str, Row] = {}
    origin: dict[str, str] = {}
    for name, entries in families.items():
        for entry in entries:
            row = Row.model_validate(entry)
            for op in row.ops:
                if op in rows:
                    raise ValueError(f"{op} has two rows, in {origin[op]} and {name}; merge them")
                rows[op], origin[op] = row, name
    return rows


def numbers(op: str) -> dict[str, Any]:
    """The named numbers of ``op``'s row."""
    return table()[op].numbers
