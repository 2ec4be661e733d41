"""causal_conv1d and its update: torch's convolution over the whole history is the oracle."""

from __future__ import annotations

import pytest
import torch

import ascend_kernels
from ascend_kernels.testing import IMPLEMENTATIONS, assert_close, opcheck, run


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def convolve(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, silu: bool) -> torch.Tensor:
    """Outputs for ``rows`` ``[tokens, channels]`` after ``width - 1`` of them, in float64."""
    filters = weight.double()[:, None]
    result = torch.nn.functional.conv1d(
        rows.double().t()[None], filters, None if bias is None else bias.double(), groups=rows.shape[1]
    )[0].t()
    return torch.nn.functional.silu(result) if silu else result


def plain(x, weight, bias, state, starts, read, write, silu: bool = True) -> tuple:
    return x, weight, bias, state, starts, read, write, None, None, None, 0, silu


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestPrefill:
    @pytest.mark.parametrize(("width", "bias", "silu"), [(4, True, True), (2, False, False), (6, True, False)], ids=str)
    def test_packed_sequences(self, implementation: str, width: int, bias: bool, silu: bool) -> None:
        lengths = [1, 0, 40, 3]
        x, weight, offset = randn(44, 20), randn(20, width, seed=1), randn(20, seed=2) if bias else None
        state = randn(6, width - 1, 20, seed=3)
        before = state.clone()
        starts = torch.tensor([0, *lengths]).cumsum(0)
        slots = torch.tensor([2, 5, 0, 4])
        arguments = plain(x, weight, offset, state, starts, slots, slots[:, None], silu)
        output = run("causal_conv1d", implementation, *arguments)
        for n, slot in enumerate(slots.tolist()):
            rows = torch.cat([before[slot], x[starts[n] : starts[n + 1]]])
            if lengths[n]:
                assert_close(output[starts[n] : starts[n + 1]], convolve(rows, weight, offset, silu), "reduction")
            assert torch.equal(state[slot], rows[len(rows) - (width - 1) :])
        assert torch.equal(state[[1, 3]], before[[1, 3]])

    def test_fewer_tokens_than_taps_shift_the_state(self, implementation: str) -> None:
        state = torch.tensor([[1.0], [2.0], [3.0]])[None].clone()
        one = torch.ones(1, dtype=torch.int64)
        x, weight = torch.tensor([[9.0]]), torch.tensor([[1.0, 10.0, 100.0, 1000.0]])
        arguments = plain(x, weight, None, state, torch.tensor([0, 1]), one - 1, (one - 1)[:, None], False)
        assert run("causal_conv1d", implementation, *arguments).tolist() == [[1 + 20 + 300 + 9000]]
        assert state.flatten().tolist() == [2.0, 3.0, 9.0]

    def test_a_state_that_is_none_yet_is_not_looked_at(self, implementation: str) -> None:
        x, weight, state = randn(5, 8), randn(8, 4, seed=1), torch.full((2, 3, 8), float("nan"))
        read, write = torch.tensor([-1]), torch.tensor([[1]])
        output = run("causal_conv1d", implementation, *plain(x, weight, None, state, torch.tensor([0, 5]), read, write))
        expected = convolve(torch.cat([torch.zeros(3, 8), x]), weight, None, True)
        assert_close(output, expected, "reduction")
        assert torch.equal(state[1], x[2:])
        assert state[0].isnan().all()

    def test_channels_last_states_and_strided_tokens(self, implementation: str) -> None:
        wide = torch.full((12, 50), float("nan"))
        x = wide[:, 7:31]
        x.copy_(randn(12, 24))
        weight, state = randn(24, 4, seed=1), randn(2, 24, 3, seed=2).transpose(1, 2)
        rows = torch.cat([state[1].clone(), x])
        slot = torch.tensor([1])
        arguments = plain(x, weight, None, state, torch.tensor([0, 12]), slot, slot[:, None])
        output = run("causal_conv1d", implementation, *arguments)
        assert_close(output, convolve(rows, weight, None, True), "reduction")
        assert torch.equal(state[1], rows[-3:])

    def test_states_at_the_ends_of_cached_blocks(self, implementation: str) -> None:
        # Blocks of 8 tokens; 6 were computed before, 13 come now: blocks 0 and 1 end, block 2 is begun.
        x, weight, state = randn(13, 8), randn(8, 4, seed=1), randn(6, 3, 8, seed=2)
        before = state.clone()
        table = torch.tensor([[4, 2, 5, -1]])
        one = torch.ones(1, dtype=torch.int32)
        arguments = (
            x,
            weight,
            None,
            state,
            torch.tensor([0, 13]),
            table[:, 0],
            table,
            0 * one,
            2 * one,
            6 * one,
            8,
            True,
        )
        output = run("causal_conv1d", implementation, *arguments)
        rows = torch.cat([before[4], x])
        assert_close(output, convolve(rows, weight, None, True), "reduction")
        assert torch.equal(state[4], rows[2:5])  # after token 8 of the sequence, 2 of these
        assert torch.equal(state[2], rows[10:13])  # after token 16
        assert torch.equal(state[5], rows[13:16])  # after the last
        assert torch.equal(state[[0, 1, 3]], before[[0, 1, 3]])

    def test_no_tokens(self, implementation: str) -> None:
        state = randn(2, 3, 8)
        slots = torch.tensor([0, 1])
        arguments = plain(randn(0, 8), randn(8, 4), None, state, torch.tensor([0, 0, 0]), slots, slots[:, None])
        assert run("causal_conv1d", implementation, *arguments).shape == (0, 8)
        assert torch.equal(state, randn(2, 3, 8))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
class TestUpdate:
    def test_prefill_and_decoding_are_one_convolution(self, implementation: str) -> None:
        x, weight, bias, state = randn(9, 12), randn(12, 4, seed=1), randn(12, seed=2), torch.zeros(1, 3, 12)
        expected = convolve(torch.cat([torch.zeros(3, 12), x]), weight, bias, True)
        slot, starts = torch.tensor([0]), torch.tensor([0, 1])
        head = plain(x[:6], weight, bias, state, torch.tensor([0, 6]), slot, slot[:, None])
        assert_close(run("causal_conv1d", implementation, *head), expected[:6], "reduction")
        for token in range(6, 9):
            arguments = (x[token : token + 1], weight, bias, state, starts, slot, slot, None, True)
            output = run("causal_conv1d_update", implementation, *arguments)
            assert_close(output, expected[token : token + 1], "reduction")

    def test_rejected_drafts_leave_no_trace(self, implementation: str) -> None:
        weight = randn(8, 4, seed=1)
        # Three drafts and one token per step: the state has three rows more.
        state = randn(3, 6, 8, seed=2)
        untouched = state[0].clone()
        history = state[2, :3].clone()
        starts, slots = torch.tensor([0, 4, 8]), torch.tensor([2, -1])
        accepted = 1
        for step, kept in enumerate((2, 4, 1)):
            x = randn(8, 8, seed=10 + step)
            number = torch.tensor([accepted, 1])
            arguments = (x, weight, None, state, starts, slots, slots, number, True)
            output = run("causal_conv1d_update", implementation, *arguments)
            rows = torch.cat([history, x[:4]])
            assert_close(output[:4], convolve(rows, weight, None, True), "reduction")
            assert_close(output[4:], convolve(torch.cat([torch.zeros(3, 8), x[4:]]), weight, None, True), "reduction")
            history, accepted = rows[kept : kept + 3], kept
        assert torch.equal(state[0], untouched)

    def test_another_slot_takes_the_state(self, implementation: str) -> None:
        x, weight, state = randn(1, 8), randn(8, 4, seed=1), randn(3, 3, 8, seed=2)
        before = state.clone()
        arguments = (x, weight, None, state, torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([2]), None, True)
        run("causal_conv1d_update", implementation, *arguments)
        assert torch.equal(state[2], torch.cat([before[0, 1:], x]))
        assert torch.equal(state[:2], before[:2])


def test_public_functions() -> None:
    x, weight, state = randn(7, 8), randn(8, 4, seed=1), randn(4, 3, 8, seed=2)
    starts, slots = torch.tensor([0, 3, 7]), torch.tensor([1, 3])
    fresh = state.clone()
    output = ascend_kernels.causal_conv1d(x, weight, None, fresh, starts, slots, torch.tensor([True, False]))
    rows = (torch.cat([state[1], x[:3]]), torch.cat([torch.zeros(3, 8), x[3:]]))
    assert_close(output, torch.cat([convolve(row, weight, None, True) for row in rows]), "reduction")
    blocks = {"initial_block": 0, "first_block": 0, "last_block": 1, "num_computed_tokens": 2}
    options = {name: torch.tensor([value]) for name, value in blocks.items()}
    cached = state.clone()
    table = torch.tensor([[1, 2]])
    ascend_kernels.causal_conv1d(x, weight, None, cached, torch.tensor([0, 7]), table, **options, block_size=4)
    assert torch.equal(cached[1], torch.cat([state[1], x])[2:5])
    assert torch.equal(cached[2], x[4:])
    window = cached[1].clone()
    one = ascend_kernels.causal_conv1d_update(x[:1], weight, None, cached, torch.tensor([0, 1]), slots[:1], None)
    assert_close(one, convolve(torch.cat([window, x[:1]]), weight, None, False), "reduction")


def test_what_does_not_fit_together_is_refused() -> None:
    x, weight, state, starts = randn(7, 8), randn(8, 4), randn(4, 2, 8), torch.tensor([0, 7])
    with pytest.raises(ValueError, match=r"state \(4, 2, 8\) do not fit"):
        ascend_kernels.causal_conv1d(x, weight, None, state, starts, torch.tensor([1]))
    with pytest.raises(ValueError, match="activation 'gelu' is not known"):
        ascend_kernels.causal_conv1d_update(x, weight, None, randn(4, 3, 8), starts, torch.tensor([1]), "gelu")
    with pytest.raises(ValueError, match="come together or not at all"):
        ascend_kernels.causal_conv1d(x, weight, None, randn(4, 3, 8), starts, torch.tensor([[1]]), block_size=4)


def test_operators_are_well_formed() -> None:
    x, weight, state, starts, slots = randn(7, 8), randn(8, 4), randn(4, 3, 8), torch.tensor([0, 7]), torch.tensor([1])
    opcheck("causal_conv1d", *plain(x, weight, None, state, starts, slots, slots[:, None]))
    opcheck("causal_conv1d_update", x, weight, randn(8), state, starts, slots, slots, None, True)
