"""layer_norm_gated: torch's norms in float64, group by group, as the oracle."""

from __future__ import annotations

import itertools

import pytest
import torch

import ascend_kernels
from ascend_kernels.testing import FLOATS, IMPLEMENTATIONS, assert_close, guarded, opcheck, run

ALL = list(itertools.product([False, True], repeat=3))


def rows(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def oracle(x, weight, bias, gate, eps, size, before, rms, sigmoid) -> torch.Tensor:
    factor = 1.0
    if gate is not None:
        factor = torch.sigmoid(gate.double()) * (1.0 if sigmoid else gate.double())
    values = x.double() if before else x.double() * factor
    parts = []
    for part in values.split(size, -1):
        if rms:
            parts.append(torch.nn.functional.rms_norm(part, (size,), None, eps))
        else:
            parts.append(torch.nn.functional.layer_norm(part, (size,), None, None, eps))
    y = torch.cat(parts, -1) * weight.double() + (0.0 if bias is None else bias.double())
    return y * factor if before else y


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestLayerNormGated:
    @pytest.mark.parametrize(("before", "rms", "sigmoid"), ALL, ids=str)
    @pytest.mark.parametrize("size", [12, 48], ids=["groups", "whole"])
    def test_every_variant(self, implementation: str, size: int, before: bool, rms: bool, sigmoid: bool) -> None:
        x, gate, weight, bias = rows(5, 48), rows(5, 48, seed=1), rows(48, seed=2), rows(48, seed=3)
        arguments = (guarded(x), weight, bias, guarded(gate, 2), 1e-5, size, before, rms, sigmoid)
        assert_close(run("layer_norm_gated", implementation, *arguments), oracle(*arguments), "reduction")

    @pytest.mark.parametrize("dtype", FLOATS, ids=str)
    def test_dtypes_without_gate_and_bias(self, implementation: str, dtype: torch.dtype) -> None:
        arguments = (rows(2, 3, 40, dtype=dtype), rows(40, seed=1), None, None, 1e-6, 40, True, True, False)
        assert_close(run("layer_norm_gated", implementation, *arguments), oracle(*arguments), "reduction")

    def test_no_rows(self, implementation: str) -> None:
        empty = torch.empty(0, 8)
        y = run("layer_norm_gated", implementation, empty, torch.ones(8), None, empty, 1e-6, 4, True, True, False)
        assert y.shape == (0, 8)

    @pytest.mark.parametrize("before", [False, True], ids=["gate-first", "norm-first"])
    def test_more_rows_than_programs(self, implementation: str, before: bool) -> None:
        count = 2_050 if implementation == "cuda" else 65_537
        x, gate = rows(count, 8), rows(count, 8, seed=1)
        arguments = (x, rows(8, seed=2), rows(8, seed=3), gate, 1e-5, 8, before, False, False)
        assert_close(run("layer_norm_gated", implementation, *arguments), oracle(*arguments), "reduction")


def test_operator_is_well_formed() -> None:
    opcheck("layer_norm_gated", rows(3, 8), torch.ones(8), None, rows(3, 8), 1e-6, 4, True, True, False)


def test_what_does_not_belong_together_is_refused() -> None:
    x, weight = rows(2, 8), torch.ones(8)
    with pytest.raises(ValueError, match="groups of 3"):
        ascend_kernels.layer_norm_gated(x, weight, group_size=3)
    with pytest.raises(ValueError, match=r"gate \(1, 8\)"):
        ascend_kernels.layer_norm_gated(x, weight, gate=x[:1])
    with pytest.raises(ValueError, match="'gelu'; silu or sigmoid"):
        ascend_kernels.layer_norm_gated(x, weight, activation="gelu")  # type: ignore[arg-type]
