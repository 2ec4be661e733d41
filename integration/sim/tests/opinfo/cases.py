"""The operators of PyTorch's database, and the committed list of those that are not supported."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of torch's own test modules
    from torch.testing._internal.common_methods_invocations import op_db

from .judge import Tally, judge, name_of

LIST = Path(__file__).with_name("unsupported.yaml")


@functools.cache
def unsupported(dtype: torch.dtype) -> dict[str, dict[str, Any]]:
    """The list's entries for a dtype, by operator."""
    entries = yaml.safe_load(LIST.read_text(encoding="utf-8"))
    return {entry["op"]: entry for entry in entries if str(dtype).removeprefix("torch.") in entry["dtypes"]}


def operators(dtype: torch.dtype) -> list[Any]:
    """Parameters for pytest: the database's operators that take a dtype on the CPU."""
    return [pytest.param(op, id=name_of(op)) for op in op_db if dtype in op.supported_dtypes("cpu")]


def check(op: Any, dtype: torch.dtype, tally: Tally) -> None:
    """Fails unless the operator agrees with the CPU, or disagrees exactly as the list says."""
    entry = unsupported(dtype).get(name_of(op))
    tally.operators += 1
    outcome = judge(op, dtype)
    for kind, found in (("refusal", outcome.refusal), ("difference", outcome.difference)):
        if found:
            assert entry is not None, found
            assert entry.get(kind, f"no {kind} is expected") in found
            tally.unsupported += 1
            return
    assert entry is None, f"{name_of(op)} works now: take it from {LIST.name}"
    tally.agree += 1
    tally.samples += outcome.samples
    tally.random += outcome.random


def check_list(dtype: torch.dtype) -> None:
    """Fails unless the list names operators of the database, at most one in twenty of them."""
    names = {name_of(op) for op in op_db if dtype in op.supported_dtypes("cpu")}
    listed = set(unsupported(dtype))
    assert listed <= names
    assert len(listed) <= len(names) / 20
