"""What a gated delta rule layer does beside the rule: gates, splitting of projections, normalisation of heads."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

import ascend_kernels
from ascend_kernels.ops.fla.gdn_gating.plan import plan_gdn_gating
from ascend_kernels.target import ASCEND_910B1, Target, cuda_target
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, guarded, opcheck, run


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestGates:
    def test_literal_values(self, implementation: str) -> None:
        a, b = torch.tensor([[0.0, 30.0]]), torch.tensor([[0.0, math.log(3.0)]])
        g, beta = run("gdn_gating", implementation, torch.tensor([0.0, math.log(2.0)]), a, b, torch.zeros(2), 1.0, 20.0)
        # softplus(0) = log 2; above the threshold softplus is the identity.
        assert g.tolist() == [pytest.approx([-math.log(2.0), -60.0])]
        assert beta.tolist() == [pytest.approx([0.5, 0.75])]

    @pytest.mark.parametrize(("count", "heads"), [(1, 1), (70, 6), (2100, 32)], ids=str)
    def test_shapes(self, implementation: str, count: int, heads: int) -> None:
        a, b = randn(count, heads, dtype=torch.bfloat16), randn(count, heads, seed=1, dtype=torch.bfloat16)
        a_log, bias = randn(heads, seed=2), randn(heads, seed=3)
        g, beta = run("gdn_gating", implementation, a_log, guarded(a), guarded(b), bias, 1.0, 20.0)
        assert_close(g, -a_log.double().exp() * torch.log1p((a.double() + bias.double()).exp()), "reduction")
        assert_close(beta, 1 / (1 + (-b.double()).exp()), "elementwise")
        assert (g.dtype, beta.dtype) == (torch.float32, torch.bfloat16)

    def test_no_tokens(self, implementation: str) -> None:
        g, beta = run("gdn_gating", implementation, randn(4), randn(0, 4), randn(0, 4), randn(4), 1.0, 20.0)
        assert g.shape == beta.shape == (0, 4)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestSplit:
    @pytest.mark.parametrize(("key_heads", "value_heads"), [(2, 4), (3, 3), (1, 3)], ids=str)
    @pytest.mark.parametrize("count", [1, 37])
    def test_as_in_transformers(self, implementation: str, key_heads: int, value_heads: int, count: int) -> None:
        model = pytest.importorskip(
            "transformers.models.qwen3_next.modeling_qwen3_next",
            reason="the environment of stock Triton has no transformers",
        )
        key_dim, value_dim = 8, 12
        group = value_heads // key_heads
        qkvz = randn(count, key_heads * 2 * (key_dim + group * value_dim))
        ba = randn(count, 2 * value_heads, seed=1)
        layer = SimpleNamespace(
            num_k_heads=key_heads, num_v_heads=value_heads, head_k_dim=key_dim, head_v_dim=value_dim
        )
        method = model.Qwen3NextGatedDeltaNet.fix_query_key_value_ordering
        query, key, value, z, b, a = (x[0] for x in method(layer, qkvz[None], ba[None]))
        dims = (key_heads, value_heads, key_dim, value_dim)
        mixed, gates, strength, decay = run("qkvzba_split", implementation, guarded(qkvz), guarded(ba), *dims)
        expected = torch.cat([x.reshape(count, -1) for x in (query, key, value)], dim=1)
        for actual, wanted in ((mixed, expected), (gates, z), (strength, b), (decay, a)):
            assert torch.equal(actual, wanted.reshape(actual.shape))

    def test_no_tokens(self, implementation: str) -> None:
        results = run("qkvzba_split", implementation, randn(0, 80), randn(0, 8), 2, 4, 8, 6)
        assert [result.shape for result in results] == [(0, 56), (0, 4, 6), (0, 4), (0, 4)]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_euclidean_norm(implementation: str) -> None:
    assert run("l2norm", implementation, torch.tensor([[3.0, 4.0]]), 0.0).tolist() == [pytest.approx([0.6, 0.8])]
    x = randn(5, 3, 100, dtype=torch.bfloat16)
    expected = x.double() / (x.double().square().sum(-1, keepdim=True) + 1e-6).sqrt()
    assert_close(run("l2norm", implementation, guarded(x), 1e-6), expected, "reduction")


def test_operators_are_well_formed() -> None:
    opcheck("gdn_gating", randn(4), randn(3, 4), randn(3, 4), randn(4), 1.0, 20.0)
    opcheck("qkvzba_split", randn(3, 80), randn(3, 8), 2, 4, 8, 6)
    opcheck("l2norm", randn(3, 8), 1e-6)
    assert ascend_kernels.l2norm(torch.tensor([3.0, 4.0]), 0.0).tolist() == pytest.approx([0.6, 0.8])
    assert [x.shape for x in ascend_kernels.gdn_gating(randn(4), randn(3, 4), randn(3, 4), randn(4))] == [(3, 4)] * 2


def test_projections_of_the_wrong_width_are_refused() -> None:
    with pytest.raises(ValueError, match="make rows of 80 and 8; given are 81 and 8"):
        ascend_kernels.qkvzba_split(randn(3, 81), randn(3, 8), 2, 4, 8, 6)


@pytest.mark.parametrize(("target", "most"), [(ASCEND_910B1, 48), (cuda_target(132), 65535)], ids=["ascend", "cuda"])
@pytest.mark.parametrize("tokens", [1, 65_535, 65_536, 2_000_000])
def test_gates_of_every_token_are_in_one_tile_within_the_grid(target: Target, most: int, tokens: int) -> None:
    plan = plan_gdn_gating(tokens, 32, target)
    assert plan.programs == min(plan.tasks, most)
    assert (plan.tasks - 1) * plan.rows < tokens <= plan.tasks * plan.rows
