# SPDX-License-Identifier: Apache-2.0
"""Expressions of the limits table: a small part of Python over an operator's arguments.

They may use what a tensor tells without its data (``shape``, ``dtype``, ``dim()``, ``numel()``, ``is_contiguous()``,
``stride()``), arithmetic, comparisons, indexing, comprehensions, names of dtypes (``float16``), and the functions
below.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping
from itertools import pairwise

import torch

_NODES = (
    ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Attribute, ast.Subscript,
    ast.Slice, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Tuple, ast.List, ast.GeneratorExp, ast.comprehension,
    ast.boolop, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip
_ATTRIBUTES = frozenset(
    ["shape", "dtype", "dim", "numel", "is_contiguous", "stride", "storage_offset", "element_size", "startswith",
     "endswith", "index", "split", "count", "upper"]
)  # fmt: skip


def nz(tensor: torch.Tensor) -> bool:
    """Whether a tensor is stored in the fractal format NZ (29)."""
    return bool(torch.ops.ascend_sim.format_of(tensor) == 29)


def rising(values: list[int]) -> bool:
    """Whether a list never falls."""
    return all(after >= before for before, after in pairwise(values))


def fits(shape: torch.Size, target: torch.Size) -> bool:
    """Whether ``shape`` broadcasts to ``target`` (each size equal or 1, counted from the last)."""
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape[::-1], target[::-1]))


FUNCTIONS = {f.__name__: f for f in (len, min, max, sum, all, any, abs, list, tuple, sorted, zip, nz, rising, fits)}
DTYPES = {name: found for name in dir(torch) if isinstance(found := getattr(torch, name), torch.dtype)}


@functools.cache
def _parsed(text: str) -> ast.Expression:
    return ast.parse(text.strip(), mode="eval")


def validate(text: str) -> None:
    """Raise unless ``text`` is an expression of the table.

    Raises:
        ValueError: If it is not; the message says which part.
    """
    try:
        tree = _parsed(text)
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no Python expression: {error.msg}") from error
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise ValueError(f"{text!r} uses {type(node).__name__}, which expressions of limits may not")
        if isinstance(node, ast.Attribute) and node.attr not in _ATTRIBUTES:
            raise ValueError(f"{text!r} uses .{node.attr}; allowed are {', '.join(sorted(_ATTRIBUTES))}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in FUNCTIONS:
            raise ValueError(f"{text!r} calls {node.func.id}; allowed are {', '.join(FUNCTIONS)}")


def names_in(text: str) -> set[str]:
    """Names that stand for arguments (or abbreviations)."""
    tree = _parsed(text)
    local = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return found - local - set(FUNCTIONS) - set(DTYPES)


def compared_with_none(text: str) -> set[str]:
    """Names that an expression compares with None."""
    return {
        node.left.id
        for node in ast.walk(_parsed(text))
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Name)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    }


class _Inline(ast.NodeTransformer):
    def __init__(self, let: Mapping[str, str]) -> None:
        self._let = let

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _parsed(inline(self._let[node.id], self._let)).body if node.id in self._let else node


def inline(text: str, let: Mapping[str, str]) -> str:
    """``text`` with abbreviations replaced by what they stand for."""
    if not names_in(text).intersection(let):
        return text
    tree = _Inline(let).visit(ast.parse(text.strip(), mode="eval"))
    return ast.unparse(ast.fix_missing_locations(tree))
