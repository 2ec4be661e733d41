# SPDX-License-Identifier: Apache-2.0
"""Calls just within and just beyond each limit, written as data (``cases/*.yaml``).

By operator: ``call`` gives arguments that the device takes; by the rule's name, ``allowed`` and ``refused`` give what
to change in it (several changes as a list), ``call`` what else to change for both, ``soc`` the family (A2 unless the
rule is for others), and ``runs: false`` marks a call that the device takes and no reference covers.

A tensor is written ``bf16[2, 8]``: ones, or zeros for integers. ``=3`` fills it, ``={1, 2}`` gives its values, ``~``
makes it a transposed view and so not contiguous, ``@nz`` casts it to the fractal format. Lists are lists of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch_npu
import yaml
from torch import Tensor

DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8,
    "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u64": torch.uint64,
    "bool": torch.bool, "e4m3": torch.float8_e4m3fn,
}  # fmt: skip
_TENSOR = re.compile(r"(\w+)\[([\d, ]*)\](?:=(\{[^}]*\}|[-\d.]+))?(~)?(@nz)?(@cpu)?")
FOLDER = Path(__file__).parent / "cases"


def tensor(text: str) -> Tensor | None:
    """The tensor that ``text`` describes; None if it describes none."""
    match = _TENSOR.fullmatch(text)
    if match is None or match[1] not in DTYPES:
        return None
    dtype, shape = DTYPES[match[1]], [int(n) for n in match[2].split(",") if n.strip()]
    if match[3] and match[3].startswith("{"):
        made = torch.tensor([float(v) for v in match[3][1:-1].split(",")]).reshape(shape).to(dtype)
    else:
        made = torch.full(shape, float(match[3] or (1 if dtype.is_floating_point else 0))).to(dtype)
    if match[4]:
        made = (
            made.transpose(-1, -2).contiguous().transpose(-1, -2)
            if made.dim() > 1
            else torch.stack([made] * 2, 1)[:, 0]
        )
    if match[6]:
        return made
    placed = (
        made.npu()
        if not match[4]
        else torch.empty_strided(made.shape, made.stride(), dtype=dtype, device="npu").copy_(made)
    )
    return torch_npu.npu_format_cast(placed, torch_npu.Format.FRACTAL_NZ) if match[5] else placed


def value(written: Any) -> Any:
    """An argument as the operator gets it."""
    if isinstance(written, list):
        return [value(item) for item in written]
    if not isinstance(written, str):
        return written
    made = tensor(written)
    return written if made is None else made


@dataclass(frozen=True)
class Case:
    """One side of a limit."""

    op: str
    rule: str
    arguments: dict[str, Any]
    soc: str | None
    runs: bool

    def built(self) -> dict[str, Any]:
        """The arguments, made anew."""
        return {name: value(written) for name, written in self.arguments.items()}


def _changes(entry: dict[str, Any], side: str) -> list[dict[str, Any]]:
    found = entry[side]
    return found if isinstance(found, list) else [found]


def _load() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        for op, entries in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            assert op not in found, f"{op} has cases in two files"
            found[op] = entries
    return found


BY_OPERATOR = _load()


def of(op: str, rule: str, side: str) -> list[Case]:
    """The cases of one side of a rule of ``op``.

    Raises:
        KeyError: If there are none.
    """
    entries = BY_OPERATOR[op]
    entry = entries[rule]
    base = {**entries["call"], **entry.get("call", {})}
    return [
        Case(op, rule, {**base, **change}, entry.get("soc"), entry.get("runs", True))
        for change in _changes(entry, side)
    ]
