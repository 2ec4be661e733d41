"""Affine maps of MLIR, as functions of integers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Expression = Callable[[Sequence[int]], int]
"""The value of an expression, given the values of the map's dimensions and symbols in order."""

_TOKEN = re.compile(r"\s*(floordiv|ceildiv|mod|[-+*(),]|\w+)")


class _Parser:
    """Recursive descent over one expression: sums of products of integers, names and brackets."""

    def __init__(self, text: str, names: Sequence[str]) -> None:
        self.tokens = _TOKEN.findall(text)
        self.position = 0
        self.names = names

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def sum(self) -> Expression:
        left = self.product()
        while self.peek() in ("+", "-"):
            left = _combine(self.take(), left, self.product())
        return left

    def product(self) -> Expression:
        left = self.atom()
        while self.peek() in ("*", "floordiv", "ceildiv", "mod"):
            left = _combine(self.take(), left, self.atom())
        return left

    def atom(self) -> Expression:
        token = self.take()
        if token == "-":
            inner = self.atom()
            return lambda values: -inner(values)
        if token == "(":
            inner = self.sum()
            self.take()
            return inner
        if token.isdigit():
            number = int(token)
            return lambda values: number
        index = self.names.index(token)
        return lambda values: values[index]


def _combine(operator: str, left: Expression, right: Expression) -> Expression:
    if operator == "+":
        return lambda values: left(values) + right(values)
    if operator == "-":
        return lambda values: left(values) - right(values)
    if operator == "*":
        return lambda values: left(values) * right(values)
    if operator == "floordiv":
        return lambda values: left(values) // right(values)
    if operator == "ceildiv":
        return lambda values: -(-left(values) // right(values))
    return lambda values: left(values) % right(values)


def _split(text: str) -> list[str]:
    """The parts of a list at its outermost commas."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def parse_maps(text: str) -> dict[str, list[Expression]]:
    """The affine maps that a module defines (``#map1 = affine_map<(d0)[s0] -> (d0 + s0, 4)>``), by name."""
    maps = {}
    pattern = r"^(#map\d*) = affine_map<\(([^)]*)\)(?:\[([^\]]*)\])? -> \((.*)\)>$"
    for name, dimensions, symbols, results in re.findall(pattern, text, re.MULTILINE):
        names = [part.strip() for part in f"{dimensions},{symbols}".split(",") if part.strip()]
        maps[name] = [_Parser(part, names).sum() for part in _split(results)]
    return maps
