"""Calls of operators without their data: what an operator declares worth compiling, and what a process has called.

A :class:`Call` names an operator and gives its arguments with tensors on the ``meta`` device. From one, the launches
of every kernel the operator would start can be recorded for any target (:func:`launches_of`), so specialisations
follow from launch plans and no list of them is kept by hand. ``ASCEND_KERNELS_CALL_LOG=FILE`` (read once, at import)
appends every distinct call of an operator on a device to a file of JSON lines; :func:`read_call_log` reads it back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import torch

from ascend_kernels.launch import Launch, recorded_launches
from ascend_kernels.target import Target, use_target

VARIABLE = "ASCEND_KERNELS_CALL_LOG"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator.

    Attributes:
        label: what distinguishes it from other calls of the operator, readable: ``T4096-H8192-bf16``.
        arguments: the operator's arguments in the order of its schema. Tensors are on ``meta``; one whose values
            decide how much a kernel reads may be on the CPU, with values.
        minimum_bytes: the least that must move through global memory (each input read once, each result written
            once); None if the traffic of this call is not accounted for.
    """

    label: str
    arguments: tuple[Any, ...]
    minimum_bytes: int | None = None


def meta(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor with a shape and a dtype and no data."""
    return torch.empty(shape, dtype=dtype, device="meta")


def short_name(dtype: torch.dtype) -> str:
    """``bf16`` for ``torch.bfloat16``, as labels and test ids have it."""
    name = str(dtype).removeprefix("torch.")
    return {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}.get(name, name)


def launches_of(launcher: Callable[..., Any], call: Call, target: Target) -> list[Launch]:
    """The launches that a call makes on ``target``; nothing runs."""
    with use_target(target), recorded_launches() as launches:
        launcher(*call.arguments)
    return launches


def _describe(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return {"tensor": list(value.shape), "stride": list(value.stride()), "dtype": str(value.dtype)[6:]}
    if isinstance(value, list | tuple):
        return [_describe(item) for item in value]
    if isinstance(value, torch.dtype):
        return {"dtype": str(value)[6:]}
    return value


def _restore(value: Any) -> Any:
    if isinstance(value, list):
        return [_restore(item) for item in value]
    if isinstance(value, dict):
        dtype = getattr(torch, value["dtype"])
        if "tensor" not in value:
            return dtype
        return torch.empty_strided(value["tensor"], value["stride"], dtype=dtype, device="meta")
    return value


def write_call(operator: str, arguments: Iterable[Any]) -> str:
    """One line of a log: the operator's name and its arguments, tensors by shape, stride and dtype."""
    return json.dumps({"operator": operator, "arguments": [_describe(value) for value in arguments]})


def read_call_log(path: Path) -> list[tuple[str, Call]]:
    """The distinct calls in a log, each with its operator's name, in the order of their first appearance.

    Raises:
        ValueError: a line is not one of a log; names the file and the line.
    """
    calls = []
    for number, line in enumerate(dict.fromkeys(path.read_text().splitlines()), start=1):
        try:
            entry = json.loads(line)
            arguments = tuple(_restore(value) for value in entry["arguments"])
            calls.append((entry["operator"], Call(f"logged-{number}", arguments)))
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}, distinct line {number}: not a line of a call log: {line[:100]!r}") from error
    return calls


_log = os.environ.get(VARIABLE)
_logged: set[str] = set()


def logging_calls(operator: str, implementation: Callable[..., Any]) -> Callable[..., Any]:
    """``implementation``, writing each distinct call to the log if the environment asks for one."""
    if _log is None:
        return implementation
    path = Path(_log)

    @wraps(implementation)
    def logged(*arguments: Any) -> Any:
        line = write_call(operator, arguments)
        if line not in _logged:
            _logged.add(line)
            with path.open("a") as file:
                file.write(line + "\n")
        return implementation(*arguments)

    return logged
