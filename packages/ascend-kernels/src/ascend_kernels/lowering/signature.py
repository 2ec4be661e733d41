"""What Triton would compile for a launch: types and constants of the kernel's arguments."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from ascend_kernels.launch import ASCEND_OPTIONS, Launch

LAUNCH_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas"}) | ASCEND_OPTIONS
"""Keyword arguments of a launch that are Triton's and not the kernel's."""

_POINTERS = {
    torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16", torch.float64: "*fp64",
    torch.int8: "*i8", torch.uint8: "*u8", torch.int16: "*i16", torch.int32: "*i32", torch.int64: "*i64",
    torch.bool: "*i1", torch.uint64: "*u64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signature:
    """A specialisation of a kernel.

    Attributes:
        types: Triton's type of each run-time argument, by name, in the kernel's order.
        constants: values known at compile time, by name: compile-time arguments, absent tensors, integers that are 1.
        values: the launch's value of each run-time argument.
        multibuffer: whether the compiler gives tiles of a loop two buffers.
    """

    types: dict[str, str]
    constants: dict[str, Any]
    values: dict[str, Any]
    multibuffer: bool = True

    def key(self, kernel: Any) -> str:
        """A digest that is the same for launches that share machine code."""
        constants = sorted((name, str(value)) for name, value in self.constants.items())
        text = f"{kernel.cache_key} {list(self.types.items())} {constants} {self.multibuffer}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def scalar_type(value: Any) -> str:
    """Triton's type of a run-time argument that is no tensor."""
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    if isinstance(value, float):
        return "fp32"
    raise TypeError(f"a kernel takes tensors, numbers and None, not {type(value).__name__} ({value!r})")


def signature_of(launch: Launch) -> Signature:
    """The specialisation that a launch compiles.

    As Triton does, an integer that is 1 (unless the kernel says ``do_not_specialize``) and a missing tensor become
    constants. Divisibility of addresses and sizes by
    16 is left out: triton-ascend 3.2 computes it and the compiler behind it makes no use of it.
    """
    names = [parameter.name for parameter in launch.kernel.params]
    bound = dict(zip(names, launch.arguments))
    bound |= {name: value for name, value in launch.options.items() if name not in LAUNCH_OPTIONS}
    if missing := [name for name in names if name not in bound]:
        raise TypeError(f"{launch.kernel.__name__}: no value for {', '.join(missing)}")
    types: dict[str, str] = {}
    constants: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for parameter in launch.kernel.params:
        name, value = parameter.name, bound[parameter.name]
        if parameter.is_constexpr:
            constants[name] = value
            continue
        values[name] = value
        if value is None:
            constants[name] = value
            types[name] = "*i8"
        elif isinstance(value, torch.Tensor):
            types[name] = _POINTERS[value.dtype]
        else:
            types[name] = scalar_type(value)
            if types[name] == "i32" and value == 1 and not parameter.do_not_specialize:
                constants[name] = value
    return Signature(types, constants, values, launch.options.get("multibuffer", True))
