"""gated_delta_rule: the recurrence in float64 and transformers' Qwen3-Next are the oracles."""

from __future__ import annotations

import pytest
import torch

import ascend_kernels
from ascend_kernels.ops.fla.recurrent_delta_rule.naive import recurrent_delta_rule_naive
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, opcheck, run


def batch(
    lengths: list[int],
    heads: tuple[int, int] = (1, 2),
    dims: tuple[int, int] = (16, 24),
    decay: float = 0.3,
    dtype: torch.dtype = torch.float32,
    seed: int = 0,
) -> tuple[torch.Tensor, ...]:
    """q, k, v, g, beta, initial states and offsets of a packed batch."""
    random = torch.Generator().manual_seed(seed)
    tokens = sum(lengths)
    q, k = (torch.randn(tokens, heads[0], dims[0], generator=random).to(dtype) for _ in range(2))
    v = torch.randn(tokens, heads[1], dims[1], generator=random).to(dtype)
    g = -torch.rand(tokens, heads[1], generator=random) * decay
    beta = torch.rand(tokens, heads[1], generator=random).to(dtype)
    state = torch.randn(len(lengths), heads[1], *dims, generator=random)
    starts = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)
    return q, k, v, g, beta, state, starts


def oracle(q, k, v, g, beta, state, starts, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The recurrence, token by token in float64."""
    wide = [tensor.double() for tensor in (q, k, v, g, beta)]
    return recurrent_delta_rule_naive(*wide, state.double() if state is not None else None, starts, scale, True)


def transformers_chunk(*arguments: torch.Tensor, **options):
    from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule

    # The decorator around it looks for fla on the hub; the torch form is underneath.
    return torch_chunk_gated_delta_rule(*arguments, **options)


def test_the_recurrence_has_the_values_of_its_definition() -> None:
    # One head, K = V = 1: S = e^g S, d = beta (v - S k), S += k d, o = S q.
    q, k, v = (torch.tensor(values).view(2, 1, 1) for values in ([1.0, 2.0], [1.0, 0.5], [3.0, 5.0]))
    g, beta = torch.tensor([[0.0], [-0.6931471805599453]]), torch.tensor([[0.5], [1.0]])
    output, final = recurrent_delta_rule_naive(q, k, v, g, beta, None, torch.tensor([0, 2]), 1.0, False)
    # S = 1.5 after the first token; then 0.75, d = 5 - 0.375 = 4.625, S = 0.75 + 2.3125.
    assert output.flatten().tolist() == pytest.approx([1.5, 6.125])
    assert final.item() == pytest.approx(3.0625)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestGatedDeltaRule:
    @pytest.mark.parametrize(
        "lengths", [[1], [64], [65], [5, 0, 70], [0, 0], [130, 3]], ids=lambda lengths: "-".join(map(str, lengths))
    )
    def test_packed_sequences(self, implementation: str, lengths: list[int]) -> None:
        arguments = batch(lengths)
        output, final = run("gated_delta_rule", implementation, *arguments, 0.25, True)
        expected, expected_final = oracle(*arguments, 0.25)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")

    def test_an_empty_sequence_ends_as_it_started(self, implementation: str) -> None:
        arguments = batch([5, 0, 4])
        _, final = run("gated_delta_rule", implementation, *arguments, 1.0, True)
        assert torch.equal(final[1], arguments[5][1])

    @pytest.mark.parametrize("decay", [0.0, 30.0], ids=["no decay", "everything forgotten"])
    def test_extreme_decays(self, implementation: str, decay: float) -> None:
        arguments = batch([80], decay=decay)
        output, final = run("gated_delta_rule", implementation, *arguments, 0.25, True)
        expected, expected_final = oracle(*arguments, 0.25)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")

    def test_keys_that_are_all_alike(self, implementation: str) -> None:
        q, k, v, _, beta, state, starts = batch([64])
        k = k[:1].expand_as(k).contiguous()
        arguments = (q, k, v, torch.zeros(64, 2), torch.ones_like(beta), state, starts)
        output, final = run("gated_delta_rule", implementation, *arguments, 0.25, True)
        expected, expected_final = oracle(*arguments, 0.25)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")

    def test_a_sequence_in_two_halves_ends_like_the_whole(self, implementation: str) -> None:
        q, k, v, g, beta, state, _ = batch([90])
        whole, final = run(
            "gated_delta_rule", implementation, q, k, v, g, beta, state, torch.tensor([0, 90]), 0.25, True
        )
        head = run(
            "gated_delta_rule",
            implementation,
            *(tensor[:37] for tensor in (q, k, v, g, beta)),
            state,
            torch.tensor([0, 37]),
            0.25,
            True,
        )
        tail = run(
            "gated_delta_rule",
            implementation,
            *(tensor[37:] for tensor in (q, k, v, g, beta)),
            head[1],
            torch.tensor([0, 53]),
            0.25,
            True,
        )
        assert_close(torch.cat([head[0], tail[0]]), whole, "recurrence")
        assert_close(tail[1], final, "recurrence")

    def test_queries_keys_and_values_cut_out_of_rows(self, implementation: str) -> None:
        q, k, v, g, beta, _, starts = batch([66])
        rows = torch.full((66, 100), float("nan"))
        views = []
        for tensor, begin in ((q, 3), (k, 21), (v, 40)):
            view = rows[:, begin : begin + tensor[0].numel()].unflatten(1, tensor.shape[1:])
            view.copy_(tensor)
            views.append(view)
        output, _ = run("gated_delta_rule", implementation, *views, g, beta, None, starts, 0.25, True)
        assert_close(output, oracle(q, k, v, g, beta, None, starts, 0.25)[0], "recurrence")


# bf16 by the definition alone: Triton's interpreter multiplies the bits of bf16 matrices as integers.
HALF_PRECISION = [*((name, torch.float16) for name in IMPLEMENTATIONS), ("naive", torch.bfloat16)]


@pytest.mark.parametrize(("implementation", "dtype"), HALF_PRECISION, ids=str)
def test_half_precision(implementation: str, dtype: torch.dtype) -> None:
    arguments = batch([70], dtype=dtype)
    output, final = run("gated_delta_rule", implementation, *arguments, 0.25, True)
    expected, expected_final = oracle(*arguments, 0.25)
    assert output.dtype == dtype
    assert final.dtype == torch.float32
    assert_close(output, expected, "recurrence")
    torch.testing.assert_close(final.double(), expected_final, rtol=2e-2, atol=2e-2)


def test_public_function_agrees_with_transformers() -> None:
    pytest.importorskip("transformers.models.qwen3_next", reason="the environment of stock Triton has no transformers")
    q, k, v, g, beta, _, _ = (tensor for tensor in batch([150], heads=(2, 2), dims=(16, 16)))
    batched = [tensor.unflatten(0, (2, 75)) for tensor in (q, k, v, g, beta)]
    output, final = ascend_kernels.gated_delta_rule(*batched, use_qk_l2norm=True)
    expected, expected_final = transformers_chunk(*batched, output_final_state=True, use_qk_l2norm_in_kernel=True)
    assert_close(output, expected, "recurrence")
    assert_close(final, expected_final, "recurrence")


def test_operator_is_well_formed() -> None:
    opcheck("gated_delta_rule", *batch([9, 0]), 0.25, True)
    q, k, v, g, beta, _, starts = batch([9])
    opcheck("gated_delta_rule", q, k, v, g, beta, None, starts, 0.25, False)


def test_what_does_not_fit_together_is_refused() -> None:
    q, k, v, g, beta, _, starts = batch([9])
    rows = [tensor[None] for tensor in (q, k, v, g, beta)]
    with pytest.raises(ValueError, match="heads of v"):
        ascend_kernels.gated_delta_rule(rows[0].expand(-1, -1, 3, -1), rows[1].expand(-1, -1, 3, -1), *rows[2:])
    with pytest.raises(ValueError, match=r"\[batch, tokens\] differ"):
        ascend_kernels.gated_delta_rule(*rows[:4], rows[4][:, :5])
    with pytest.raises(ValueError, match="the batch is 3"):
        ascend_kernels.gated_delta_rule(*(row.expand(3, *row.shape[1:]) for row in rows), cu_seqlens=starts)
