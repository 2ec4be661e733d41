"""Bytes that a lowered kernel moves through global memory, read off its HIVM.

In memory-planned HIVM a transfer is a call of a library routine with an operand in global memory, or a scalar load or
store of it. The integer part of the module (program numbers, loop bounds, sizes of slices) is interpreted for every
program of the grid with the launch's arguments; what floats compute is not. Whatever would decide a loop, a branch with
transfers or a size and is not an integer known from those raises :class:`NotStaticError`: a count is exact or absent.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch

from ascend_kernels.lowering.affine import parse_maps
from ascend_kernels.lowering.hivm import Function, Operation, parse_functions
from ascend_kernels.lowering.signature import Signature


class NotStaticError(Exception):
    """The traffic depends on something other than the launch's integers; says on what."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A slice of global memory.

    Attributes:
        source: the kernel's argument that it belongs to, ``workspace``, or ``address`` where the kernel knows a number.
        sizes: elements per dimension, None where the compiler knows no bound.
        element: bytes of an element.
        offset: of its first element from the argument's address, in elements.
        strides: elements between neighbours per dimension; None after a change of shape.
    """

    source: str
    sizes: tuple[int | None, ...]
    element: int
    offset: int | None = 0
    strides: tuple[int | None, ...] | None = None


@dataclass(slots=True)
class Traffic:
    """Bytes by the kernel's argument, and how many of them moved in scalar accesses."""

    loaded: Counter[str]
    stored: Counter[str]
    scalar: int = 0

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.loaded.values()) + sum(self.stored.values())


_BYTES = {"f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i16": 2, "i8": 1, "i1": 1, "i64": 8, "f64": 8}
_NAME = re.compile(r"%\w+(?:#\d+)?")

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: int(math.copysign(abs(a) // abs(b), a * b)) if a else 0,
    "divui": lambda a, b: a // b,
    "remsi": lambda a, b: int(math.fmod(a, b)),
    "remui": lambda a, b: a % b,
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-a // b),
    "minsi": min,
    "maxsi": max,
    "minui": min,
    "maxui": max,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "shli": lambda a, b: a << b,
    "shrsi": lambda a, b: a >> b,
    "shrui": lambda a, b: a >> b,
    "index_cast": lambda a: a,
    "index_castui": lambda a: a,
    "extui": lambda a: a,
    "bitcast": lambda a: a,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_SAME_MEMORY = ("memref.cast", "memref.memory_space_cast", "annotation.mark")
_RESHAPES = ("memref.collapse_shape", "memref.expand_shape")
_LOADS = re.compile(r"(load_gm_to|nd2nz|copy_gm_to|load_gm)")
_STORES = re.compile(r"(store_ubuf_to_gm|fixpipe|store_.*to_gm|copy_ubuf_to_gm)")


# A program's operations run once per iteration and program; their texts are taken apart once.


@cache
def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@cache
def _operand_names(text: str) -> list[str]:
    return _NAME.findall(text.split(" : ")[0])


@cache
def _search(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text)


def _element_bytes(memref: str) -> int:
    found = re.search(r"memref<(?:[?\d]+x)*(\w+)", memref)
    if found is None:
        raise NotStaticError(f"no element type in {memref[:80]!r}")
    return _BYTES[found[1]]


def _has_transfers(operations: Iterable[Operation]) -> bool:
    return any(
        operation.name in ("func.call", "call", "memref.load", "memref.store")
        or any(_has_transfers(region) for region in operation.regions)
        for operation in operations
    )


class _Program:
    """One program's run over a function; values are integers, :class:`Memory`, or None for everything else."""

    def __init__(self, maps: dict[str, list[Any]], tensors: dict[str, torch.Tensor], traffic: Traffic) -> None:
        self.maps = maps
        self.tensors = tensors
        self.traffic = traffic
        self.values: dict[str, Any] = {}
        self.block = 0
        self.sub_block = 0

    def value(self, text: str) -> Any:
        """The value of a name or a literal."""
        return self.values.get(text) if text.startswith("%") else int(text)

    def operands(self, operation: Operation) -> list[Any]:
        return [self.values.get(name) for name in _operand_names(operation.text)]

    def set(self, operation: Operation, *values: Any) -> None:
        for name, value in zip(operation.results, values):
            self.values[name] = value

    def run(self, operations: list[Operation]) -> list[Any]:
        """Run a region; returns what it yields."""
        for operation in operations:
            name = operation.name
            if name in ("scf.yield", "scf.condition"):
                return self.operands(operation)
            if name.startswith("arith."):
                self.arithmetic(operation)
            elif (handler := _HANDLERS.get(name)) is not None:
                handler(self, operation)
            elif operation.regions and _has_transfers([operation]):
                raise NotStaticError(f"operation {name} around transfers")
            else:
                self.set(operation, *[None] * len(operation.results))
        return []

    # Integers.

    def arithmetic(self, operation: Operation) -> None:
        name = operation.name[6:]
        if name == "constant":
            found = _search(r"arith\.constant (true|false|-?\d+)(?: : (?:i\d+|index))?$", operation.text)
            self.set(operation, None if found is None else {"true": 1, "false": 0}.get(found[1]) or _integer(found[1]))
            return
        operands = self.operands(operation)
        if name == "select":
            condition, yes, no = operands
            self.set(operation, None if condition is None else (yes if condition else no))
            return
        if any(not isinstance(operand, int) for operand in operands):
            self.set(operation, None)
        elif name == "cmpi":
            predicate = operation.text.split()[1].rstrip(",")
            compare = _COMPARISONS[predicate if predicate in ("eq", "ne") else predicate[1:]]
            self.set(operation, int(compare(*operands)))
        elif name in ("trunci", "extsi"):
            self.set(operation, _resized(name, operands[0], operation.text))
        else:
            function = _ARITHMETIC.get(name)
            self.set(operation, function(*operands) if function else None)

    def affine(self, operation: Operation) -> None:
        found = _search(r"affine\.(\w+) (#map\d*)\(([^)]*)\)(?:\[([^\]]*)\])?", operation.text)
        if found is None:
            raise NotStaticError(f"operation {operation.text[:60]!r}")
        kind, name, dimensions, symbols = found.groups()
        operands = [self.value(part) for part in _list(f"{dimensions},{symbols or ''}")]
        if any(not isinstance(operand, int) for operand in operands):
            self.set(operation, None)
            return
        results = [expression(operands) for expression in self.maps[name]]
        self.set(operation, {"min": min, "max": max}.get(kind, lambda values: values[0])(results))

    def block_index(self, operation: Operation) -> None:
        self.set(operation, self.block)

    def sub_block_index(self, operation: Operation) -> None:
        self.set(operation, self.sub_block)

    # Control flow.

    def loop(self, operation: Operation) -> None:
        found = _search(r"scf\.for (%\w+) = (%\w+) to (%\w+) step (%\w+)", operation.text)
        if found is None:
            raise NotStaticError(f"loop {operation.text[:60]!r}")
        bounds = [self.value(name) for name in found.groups()[1:]]
        carried = _search(r"iter_args\(([^)]*)\)", operation.text)
        pairs = [part.split(" = ") for part in _list(carried[1])] if carried else []
        state = [self.value(initial) for _, initial in pairs]
        if any(not isinstance(bound, int) for bound in bounds):
            if _has_transfers([operation]):
                raise NotStaticError(f"bounds of the loop over {found[1]}")
            self.set(operation, *[None] * len(operation.results))
            return
        for index in range(*bounds):
            self.values[found[1]] = index
            for (name, _), value in zip(pairs, state):
                self.values[name] = value
            yielded = self.run(operation.regions[0])
            state = yielded if pairs else state
        self.set(operation, *state)

    def while_loop(self, operation: Operation) -> None:
        found = _search(r"scf\.while \(([^)]*)\)", operation.text)
        pairs = [part.split(" = ") for part in _list(found[1])] if found else []
        names, state = [name for name, _ in pairs], [self.value(initial) for _, initial in pairs]
        before, after = operation.regions
        heads = [step for step in after if step.name == "block"]
        inner = _NAME.findall(heads[0].text) if heads else names
        while True:
            self.values |= dict(zip(names, state))
            condition, *passed = self.run(before)
            if condition is None:
                if _has_transfers([operation]):
                    raise NotStaticError("the condition of a while loop")
                self.set(operation, *[None] * len(operation.results))
                return
            if not condition:
                break
            self.values |= dict(zip(inner, passed))
            state = self.run(after)
        self.set(operation, *passed)

    def branch(self, operation: Operation) -> None:
        condition = self.operands(operation)[0]
        if condition is None:
            if _has_transfers([operation]):
                raise NotStaticError(f"condition of {operation.text[:60]!r}")
            self.set(operation, *[None] * len(operation.results))
            return
        regions = operation.regions
        taken = regions[0] if condition else (regions[1] if len(regions) > 1 else [])
        self.set(operation, *self.run(taken))

    # Global memory.

    def same(self, operation: Operation) -> None:
        self.set(operation, self.operands(operation)[0])

    def reshape(self, operation: Operation) -> None:
        memory = self.operands(operation)[0]
        if not isinstance(memory, Memory):
            self.set(operation, None)
            return
        known = None not in memory.sizes
        self.set(operation, replace(memory, sizes=(math.prod(memory.sizes) if known else None,), strides=None))  # type: ignore[arg-type]

    def subview(self, operation: Operation) -> None:
        memory = self.operands(operation)[0]
        if not isinstance(memory, Memory):
            self.set(operation, None)
            return
        found = _search(r"memref\.subview %\w+(?:#\d+)?\[([^\]]*)\] \[([^\]]*)\] \[([^\]]*)\]", operation.text)
        if found is None:
            raise NotStaticError(f"operation {operation.text[:60]!r}")
        offsets, sizes, steps = ([self.value(part) for part in _list(text)] for text in found.groups())
        offset = _dot(offsets, memory.strides, memory.offset)
        strides = None if memory.strides is None else tuple(map(_times, steps, memory.strides))
        self.set(operation, replace(memory, sizes=tuple(sizes), offset=offset, strides=strides))

    def reinterpret(self, operation: Operation) -> None:
        memory = self.operands(operation)[0]
        if not isinstance(memory, Memory):
            self.set(operation, None)
            return
        found = _search(r"offset: \[([^\]]*)\], sizes: \[([^\]]*)\], strides: \[([^\]]*)\]", operation.text)
        if found is None:
            raise NotStaticError(f"operation {operation.text[:60]!r}")
        offset, sizes, strides = ([self.value(part) for part in _list(text)] for text in found.groups())
        self.set(operation, replace(memory, sizes=tuple(sizes), offset=offset[0], strides=tuple(strides)))

    def view(self, operation: Operation) -> None:
        """A part of the workspace, through which matrix and vector cores hand each other tiles."""
        memory = self.operands(operation)[0]
        found = _search(r" to memref<((?:\d+x)+)(\w+)", operation.text)
        if not isinstance(memory, Memory) or found is None:
            self.set(operation, None)
            return
        sizes = tuple(int(size) for size in found[1].split("x")[:-1])
        self.set(operation, replace(memory, sizes=sizes, element=_BYTES[found[2]], offset=None, strides=None))

    def address(self, operation: Operation) -> None:
        """Global memory at an address that the kernel has read or computed; a tile on chip is none."""
        kind = operation.text.split(" : ")[1]
        in_global_memory = "address_space<gm>" in kind
        self.set(operation, Memory("address", (None,), _element_bytes(kind), 0, (1,)) if in_global_memory else None)

    def metadata(self, operation: Operation) -> None:
        memory = self.operands(operation)[0]
        if not isinstance(memory, Memory):
            self.set(operation, *[None] * len(operation.results))
            return
        strides = memory.strides or (None,) * len(memory.sizes)
        self.set(operation, memory, memory.offset, *memory.sizes, *strides)

    def load_scalar(self, operation: Operation) -> None:
        memory = self.operands(operation)[0]
        self.set(operation, None)
        if not isinstance(memory, Memory):
            return
        self.traffic.loaded[memory.source] += memory.element
        self.traffic.scalar += memory.element
        found = _search(r"\[([^\]]*)\]", operation.text)
        indices = [self.value(part) for part in _list(found[1])] if found else []
        address = _dot(indices, memory.strides, memory.offset)
        tensor = self.tensors.get(memory.source)
        if tensor is not None and address is not None:
            self.set(operation, int(tensor[address]))

    def store_scalar(self, operation: Operation) -> None:
        for memory in self.operands(operation)[1:2]:
            if isinstance(memory, Memory):
                self.traffic.stored[memory.source] += memory.element
                self.traffic.scalar += memory.element

    def call(self, operation: Operation) -> None:
        memories = [operand for operand in self.operands(operation) if isinstance(operand, Memory)]
        self.set(operation, *[None] * len(operation.results))
        routine = _search(r"@(\w+)", operation.text)
        name = routine[1] if routine else ""
        if len(memories) != 1 or not (_STORES.match(name) or _LOADS.match(name)):
            raise NotStaticError(f"routine {name} on global memory")
        memory = memories[0]
        if any(not isinstance(size, int) for size in memory.sizes):
            raise NotStaticError(f"the size of a transfer of {memory.source} ({name})")
        moved = math.prod(max(size, 0) for size in memory.sizes if size is not None) * memory.element
        (self.traffic.stored if _STORES.match(name) else self.traffic.loaded)[memory.source] += moved


def _integer(text: str) -> int | None:
    return None if text in ("true", "false") else int(text)


def _resized(name: str, value: int, text: str) -> int:
    source, target = re.findall(r"i(\d+)|index", text.split(" : ")[1])[:2]
    if name == "extsi":
        return -value if source == "1" else value
    return value & 1 if target == "1" else value


def _times(left: Any, right: Any) -> int | None:
    return left * right if isinstance(left, int) and isinstance(right, int) else None


def _dot(indices: list[Any], strides: tuple[int | None, ...] | None, offset: int | None) -> int | None:
    """The address of an element, None if any part of it is unknown."""
    if strides is None and len(indices) == 1:
        strides = (1,)
    if offset is None or strides is None:
        return None
    parts = [_times(index, stride) for index, stride in zip(indices, strides)]
    return None if None in parts else offset + sum(part for part in parts if part is not None)


_HANDLERS: dict[str, Callable[[_Program, Operation], None]] = {
    "affine.apply": _Program.affine,
    "affine.min": _Program.affine,
    "affine.max": _Program.affine,
    "hivm.hir.get_block_idx": _Program.block_index,
    "hivm.hir.get_sub_block_idx": _Program.sub_block_index,
    "scf.for": _Program.loop,
    "scf.while": _Program.while_loop,
    "scf.if": _Program.branch,
    "memref.subview": _Program.subview,
    "memref.reinterpret_cast": _Program.reinterpret,
    "memref.extract_strided_metadata": _Program.metadata,
    "hivm.hir.pointer_cast": _Program.address,
    "memref.view": _Program.view,
    "memref.load": _Program.load_scalar,
    "memref.store": _Program.store_scalar,
    "func.call": _Program.call,
    "call": _Program.call,
    **dict.fromkeys(_SAME_MEMORY, _Program.same),
    **dict.fromkeys(_RESHAPES, _Program.reshape),
}


def _bind(function: Function, signature: Signature, grid: tuple[int, ...]) -> dict[str, Any]:
    """Values of a function's arguments: ours in the kernel's order, then the grid's three dimensions."""
    ours = [name for name in signature.types if name not in signature.constants]
    dimensions = [*grid, 1, 1][:3]
    values: dict[str, Any] = {}
    own = [argument for argument in function.arguments if not argument.role]
    for argument in function.arguments:
        if argument.role and "memref" in argument.type:
            values[argument.name] = Memory("workspace", (None,), _element_bytes(argument.type), 0, (1,))
    for index, argument in enumerate(own):
        if index >= len(ours):
            values[argument.name] = dimensions[index - len(ours)] if index - len(ours) < 3 else None
        elif "memref" in argument.type:
            values[argument.name] = Memory(ours[index], (None,), _element_bytes(argument.type), 0, (1,))
        else:
            value = signature.values[ours[index]]
            values[argument.name] = value if isinstance(value, int) else None
    return values


def measure(hivm: str, signature: Signature, grid: tuple[int, ...]) -> Traffic:
    """The traffic of a launch, summed over its programs.

    Raises:
        NotStaticError: it depends on more than the launch's integers (and the values of tensors that have some).
    """
    maps = parse_maps(hivm)
    tensors = {
        name: value.reshape(-1)
        for name, value in signature.values.items()
        if isinstance(value, torch.Tensor) and value.device.type == "cpu"
    }
    traffic = Traffic(Counter(), Counter())
    functions = parse_functions(hivm)
    if not functions:
        raise NotStaticError("no function that runs on the device was found")
    for function in functions:
        # Two vector cores belong to a cube core; a vector function of a mixed kernel runs once on each.
        halves = 2 if function.name.endswith("_mix_aiv") else 1
        arguments = _bind(function, signature, grid)
        for block in range(math.prod(grid)):
            for half in range(halves):
                program = _Program(maps, tensors, traffic)
                program.values = dict(arguments)
                program.block, program.sub_block = block, half
                program.run(function.body)
    if traffic.total == 0:
        raise NotStaticError("no transfer was found")
    return traffic
