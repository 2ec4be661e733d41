"""The parts of the chunked gated delta rule: each against what it is defined by, then put together."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ascend_kernels
from ascend_kernels.ops.fla.chunk_index import ChunkIndex
from ascend_kernels.ops.fla.recurrent_delta_rule.naive import recurrent_delta_rule_naive
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, guarded, opcheck, run

CHUNK = 16
LENGTHS = [5, 0, 33, 16]


def starts_of(lengths: list[int]) -> torch.Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


def index_of(lengths: list[int], chunk: int = CHUNK) -> ChunkIndex:
    return ascend_kernels.chunk_index(starts_of(lengths), sum(lengths), chunk)


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestChunkIndex:
    def test_literal_values(self, implementation: str) -> None:
        result = run("chunk_index", implementation, torch.tensor([0, 5, 5, 9], dtype=torch.int32), 9, 4)
        sequence, first, end, offsets = (column.tolist() for column in result)
        assert offsets == [0, 2, 2, 3]
        assert (sequence[:3], first[:3], end[:3]) == ([0, 0, 2], [0, 4, 5], [4, 5, 9])
        assert set(zip(sequence[3:], first[3:], end[3:], strict=True)) <= {(-1, 0, 0)}

    def test_chunks_are_counted_per_sequence(self, implementation: str) -> None:
        offsets = run("chunk_index", implementation, torch.tensor([0, 781, 2048]), 2048, 32)[3]
        assert offsets.tolist() == [0, 25, 65]

    def test_no_tokens(self, implementation: str) -> None:
        sequence, _, _, offsets = run("chunk_index", implementation, torch.tensor([0, 0, 0]), 0, 64)
        assert (sequence.shape, offsets.tolist()) == ((0,), [0, 0, 0])

    @settings(max_examples=8, deadline=None)
    @given(lengths=st.lists(st.integers(0, 40), min_size=1, max_size=6), chunk=st.sampled_from([1, 4, 16]))
    def test_every_token_is_in_one_chunk_of_its_sequence(
        self, implementation: str, lengths: list[int], chunk: int
    ) -> None:
        starts = starts_of(lengths)
        sequence, first, end, _ = run("chunk_index", implementation, starts, sum(lengths), chunk)
        tokens = [
            (owner, token)
            for owner, begin, stop in zip(sequence.tolist(), first.tolist(), end.tolist(), strict=True)
            for token in range(begin, stop)
        ]
        assert tokens == [
            (owner, int(starts[owner]) + i) for owner, length in enumerate(lengths) for i in range(length)
        ]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestParts:
    @pytest.mark.parametrize("shape", [(), (3,), (2, 40)], ids=str)
    @pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
    def test_sums_within_chunks(self, implementation: str, shape: tuple[int, ...], reverse: bool) -> None:
        index, values = index_of(LENGTHS), randn(54, *shape)
        sums = run("chunk_local_cumsum", implementation, values, index.first, index.end, CHUNK, reverse, 0.5)
        # Sequences of 5, 33 and 16 tokens start at 0, 5 and 38.
        parts = values.double().split([5, 16, 16, 1, 16])
        expected = [part.flip(0).cumsum(0).flip(0) if reverse else part.cumsum(0) for part in parts]
        assert_close(sums, 0.5 * torch.cat(expected), "reduction")

    def test_products_of_keys(self, implementation: str) -> None:
        index = index_of([20])
        k, beta = randn(20, 1, 24), randn(20, 2, seed=1).sigmoid()
        sums = -0.2 * randn(20, 2, seed=2).abs().cumsum(0)  # a decay: sums of logarithms never rise
        matrix = run("scaled_dot_kkt", implementation, guarded(k), beta, sums, index.first, index.end, CHUNK)
        for i, j, head in ((3, 1, 0), (15, 0, 1), (19, 16, 1)):
            expected = beta[i, head] * (k[i, 0] @ k[j, 0]) * (sums[i, head] - sums[j, head]).exp()
            assert matrix[i, head, j % CHUNK].item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)
        assert matrix[3, 0, 3:].eq(0).all()

    @pytest.mark.parametrize("chunk", [16, 64])
    def test_inverses(self, implementation: str, chunk: int) -> None:
        lengths = [chunk, 7]
        index, matrix = index_of(lengths, chunk), randn(chunk + 7, 2, chunk) * 0.4
        inverse = run("solve_tril", implementation, matrix, index.first, index.end, torch.float32)
        for begin, stop in ((0, chunk), (chunk, chunk + 7)):
            size = stop - begin
            lower = matrix[begin:stop, :, :size].transpose(0, 1).double().tril(-1) + torch.eye(size)
            product = lower @ inverse[begin:stop, :, :size].transpose(0, 1).double()
            torch.testing.assert_close(product, torch.eye(size).double().expand(2, -1, -1), rtol=0, atol=2e-4)

    def test_together_they_are_the_recurrence(self, implementation: str) -> None:
        lengths = [40, 0, 9]
        index, starts = index_of(lengths), starts_of(lengths)
        q, k = torch.nn.functional.normalize(randn(2, 49, 1, 16), dim=-1)
        v, g, beta = randn(49, 2, 24, seed=1), -randn(49, 2, seed=2).abs() * 0.3, randn(49, 2, seed=3).sigmoid()
        state = randn(3, 2, 16, 24, seed=4)
        chunks = (index.first, index.end)
        sums = run("chunk_local_cumsum", implementation, g, *chunks, CHUNK, False, 1.0)
        matrix = run("scaled_dot_kkt", implementation, k, beta, sums, *chunks, CHUNK)
        inverse = run("solve_tril", implementation, matrix, *chunks, torch.float32)
        w, u = run("wy_fast", implementation, k, v, beta, sums, inverse, *chunks)
        states, deltas, final = run(
            "chunk_delta_h", implementation, k, w, u, sums, state, starts, index.offsets, index.first.shape[0], CHUNK
        )
        output = run("chunk_o", implementation, q, k, deltas, states, sums, *chunks, 0.25, CHUNK)
        wide = [tensor.double() for tensor in (q, k, v, g, beta, state)]
        expected, expected_final = recurrent_delta_rule_naive(*wide, starts, 0.25, False)
        assert_close(output, expected, "recurrence")
        assert_close(final, expected_final, "recurrence")

    def test_transitions_carry_what_came_before(self, implementation: str) -> None:
        lengths = [40, 0]
        index, starts = index_of(lengths), starts_of(lengths)
        k = torch.nn.functional.normalize(randn(40, 1, 16), dim=-1)
        w, u = randn(40, 2, 16, seed=1) * 0.2, randn(40, 2, 16, seed=2)
        sums = run(
            "chunk_local_cumsum", "naive", -randn(40, 2, seed=3).abs() * 0.1, index.first, index.end, CHUNK, False, 1.0
        )
        before = randn(2, 2, 16, 16, seed=4)

        def final(state: torch.Tensor | None) -> torch.Tensor:
            rest = (starts, index.offsets, index.first.shape[0], CHUNK)
            return run("chunk_delta_h", implementation, k, w, u, sums, state, *rest)[2]

        transition = run("chunk_transition", implementation, k, w, sums, starts, CHUNK)
        assert_close(final(None) + transition @ before, final(before), "recurrence")
        assert torch.equal(transition[1], torch.eye(16).expand(2, -1, -1))


def test_operators_are_well_formed() -> None:
    index, starts = index_of([20, 3]), starts_of([20, 3])
    k, v, beta, sums = randn(23, 1, 16), randn(23, 2, 16), randn(23, 2), -randn(23, 2).abs()
    matrix = ascend_kernels.scaled_dot_kkt(k, beta, sums, index, CHUNK)
    inverse = ascend_kernels.solve_tril(matrix, index)
    w, u = ascend_kernels.wy_fast(k, v, beta, sums, inverse, index)
    states, deltas, _ = ascend_kernels.chunk_delta_h(k, w, u, sums, starts, index, CHUNK)
    opcheck("chunk_index", starts, 23, CHUNK)
    opcheck("chunk_local_cumsum", beta, index.first, index.end, CHUNK, False, 1.0)
    opcheck("scaled_dot_kkt", k, beta, sums, index.first, index.end, CHUNK)
    opcheck("solve_tril", matrix, index.first, index.end, torch.float32)
    opcheck("wy_fast", k, v, beta, sums, inverse, index.first, index.end)
    opcheck("chunk_delta_h", k, w, u, sums, None, starts, index.offsets, index.first.shape[0], CHUNK)
    opcheck("chunk_transition", k, w, sums, starts, CHUNK)
    opcheck("chunk_o", k, k, deltas, states, sums, index.first, index.end, 0.25, CHUNK)
    assert ascend_kernels.chunk_transition(k, w, sums, starts, CHUNK).shape == (2, 2, 16, 16)
    assert ascend_kernels.chunk_o(k, k, deltas, states, sums, index, 0.25, CHUNK).shape == (23, 2, 16)
    assert ascend_kernels.chunk_local_cumsum(beta, index, CHUNK).shape == (23, 2)
