"""Affine maps against values worked out by hand."""

from __future__ import annotations

import pytest

from ascend_kernels.lowering.affine import parse_maps


@pytest.mark.parametrize(
    ("text", "operands", "expected"),
    [
        ("()[s0] -> (0, s0)", [7], [0, 7]),
        ("(d0)[s0, s1] -> (d0 * 4 + s1 - s0)", [3, 1, 2], [13]),
        ("()[s0] -> ((s0 + 3) floordiv 4)", [-8], [-2]),
        ("()[s0] -> (s0 ceildiv 4, s0 mod 4)", [5], [2, 1]),
        ("()[s0] -> (-s0 + 10)", [4], [6]),
    ],
    ids=["constants", "sum", "floor-of-negative", "ceil-and-modulo", "negation"],
)
def test_values(text: str, operands: list[int], expected: list[int]) -> None:
    maps = parse_maps(f"#map = affine_map<() -> (1)>\n#map1 = affine_map<{text}>\n")
    assert [expression(operands) for expression in maps["#map1"]] == expected
