"""One rank's experts against the dense layer in float64."""

import pytest
import torch

from ascend_moe.experts import Activation, ExpertWeights, bias_dtype, compute, expert_mlp
from ascend_moe.routing import Choice

from .oracle import dense_layer

HIDDEN, INTERMEDIATE, EXPERTS = 16, 24, 4


def draw(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) / 2


GATE_UP, DOWN = draw(EXPERTS, 2 * INTERMEDIATE, HIDDEN, seed=1), draw(EXPERTS, HIDDEN, INTERMEDIATE, seed=2)
GATE_UP_BIAS, DOWN_BIAS = draw(EXPERTS, 2 * INTERMEDIATE, seed=3), draw(EXPERTS, HIDDEN, seed=4)


def weights_of(*experts: int, biased: bool = False, dtype: torch.dtype = torch.float32) -> ExpertWeights:
    chosen = list(experts) or list(range(EXPERTS))
    gate_up, down = (it[chosen].to("npu", dtype) for it in (GATE_UP, DOWN))
    if not biased:
        return ExpertWeights(gate_up, down)
    return ExpertWeights(gate_up, down, *(it[chosen].to("npu", bias_dtype(dtype)) for it in (GATE_UP_BIAS, DOWN_BIAS)))


def choice_of(experts: list[list[int]], seed: int = 5) -> Choice:
    numbers = torch.tensor(experts, dtype=torch.int32)
    return Choice(draw(*numbers.shape, seed=seed).abs().npu(), numbers.npu())


def close(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got.cpu().double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("biased", [False, True], ids=["plain", "biased"])
@pytest.mark.parametrize("activation", ["silu", "gelu", "gelu_tanh", "swigluoai", "swiglustep"])
@pytest.mark.parametrize("top_k", [1, 2, 4])
def test_equals_the_dense_layer(top_k: int, activation: str, biased: bool) -> None:
    tokens = draw(7, HIDDEN, seed=6)
    order = torch.stack([torch.randperm(EXPERTS, generator=torch.Generator().manual_seed(it)) for it in range(7)])
    choice = choice_of(order[:, :top_k].tolist())
    biases = {"gate_up_bias": GATE_UP_BIAS, "down_bias": DOWN_BIAS} if biased else {}
    expected = dense_layer(
        tokens, choice.weights.tolist(), choice.experts.tolist(), GATE_UP, DOWN, activation, **biases
    )
    close(compute(tokens.npu(), choice, weights_of(biased=biased), Activation.of(activation)), expected)


@pytest.mark.parametrize("local", [[0, 1], [3], [2, 0, 3]], ids=str)
def test_the_ranks_shares_add_up(local: list[int]) -> None:
    # Any experts may be here, in any order, also a single one; the rest is elsewhere.
    tokens, choice = draw(5, HIDDEN, seed=7), choice_of([[0, 1], [2, 3], [3, 0], [1, 2], [1, 0]])
    total = torch.zeros(5, HIDDEN)
    for here in (local, [it for it in range(EXPERTS) if it not in local]):
        expert_map = torch.full((EXPERTS,), -1, dtype=torch.int32)
        expert_map[here] = torch.arange(len(here), dtype=torch.int32)
        total += compute(tokens.npu(), choice, weights_of(*here), Activation.of("silu"), expert_map.npu()).cpu()
    close(total, dense_layer(tokens, choice.weights.tolist(), choice.experts.tolist(), GATE_UP, DOWN))


def test_a_rank_that_no_token_chose_gives_zeros() -> None:
    # Nothing computes its rows, so they hold whatever was in memory.
    expert_map = torch.tensor([-1, -1, 0, 1], dtype=torch.int32).npu()
    got = compute(
        draw(3, HIDDEN, seed=8).npu(), choice_of([[0, 1]] * 3), weights_of(2, 3), Activation.of("silu"), expert_map
    )
    assert torch.equal(got.cpu(), torch.zeros(3, HIDDEN))


def test_no_tokens() -> None:
    choice = Choice(torch.empty(0, 2).npu(), torch.empty(0, 2, dtype=torch.int32).npu())
    assert compute(torch.empty(0, HIDDEN).npu(), choice, weights_of(), Activation.of("silu")).shape == (0, HIDDEN)


@pytest.mark.parametrize("counts", [[0, 5, 0, 3], [8, 0, 0, 0], [0, 0, 0, 8]], ids=str)
def test_experts_without_rows(counts: list[int]) -> None:
    rows = draw(8, HIDDEN, seed=9)
    experts = [[expert] for expert, count in enumerate(counts) for _ in range(count)]
    got = expert_mlp(rows.npu(), torch.tensor(counts).npu(), weights_of(), Activation.of("silu"))
    close(got, dense_layer(rows, [[1.0]] * 8, experts, GATE_UP, DOWN))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision(dtype: torch.dtype) -> None:
    tokens, choice = draw(6, HIDDEN, seed=10).to(dtype), choice_of([[0, 1], [2, 3], [3, 0], [1, 2], [1, 0], [0, 3]])
    expected = dense_layer(
        tokens, choice.weights.tolist(), choice.experts.tolist(), GATE_UP, DOWN,
        gate_up_bias=GATE_UP_BIAS, down_bias=DOWN_BIAS,
    )  # fmt: skip
    got = compute(tokens.npu(), choice, weights_of(biased=True, dtype=dtype), Activation.of("silu"))
    assert got.dtype == dtype
    # Sums of some products of numbers around one, each rounded to 8 or 11 bits four times on the way.
    torch.testing.assert_close(got.cpu().double(), expected, rtol=0, atol=8 * torch.finfo(dtype).eps)


def test_a_captured_graph_follows_the_map() -> None:
    # The map of experts to slots is read on the device: a change of placement needs no second capture.
    tokens, choice = draw(4, HIDDEN, seed=11).npu(), choice_of([[0], [1], [0], [1]])
    expert_map, weights, activation = (
        torch.tensor([0, 1], dtype=torch.int32).npu(),
        weights_of(0, 1),
        Activation.of("silu"),
    )
    compute(tokens, choice, weights, activation, expert_map)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = compute(tokens, choice, weights, activation, expert_map)
    graph.replay()
    before = result.cpu().clone()
    expert_map.copy_(torch.tensor([1, 0], dtype=torch.int32))
    weights.gate_up.copy_(weights.gate_up.flip(0).clone())
    weights.down.copy_(weights.down.flip(0).clone())
    graph.replay()
    assert torch.equal(result.cpu(), before)
    close(before, dense_layer(tokens.cpu(), choice.weights.tolist(), choice.experts.tolist(), GATE_UP, DOWN))
