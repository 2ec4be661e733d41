"""The products of adapters against float64, row by row."""

from __future__ import annotations

import pytest
import torch
from vllm.lora.layers import LoRAMapping

from vllm_ascend.lora.punica import AscendPunicaWrapper

ADAPTERS = 3
SLOTS: list[int | None] = [11, None, 13]
"""Adapter 11 lies in slot 0, 13 in slot 2."""
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 3e-2}


def wrapper(request_of_token: list[int], sampled: list[int] | None = None) -> AscendPunicaWrapper:
    made = AscendPunicaWrapper(64, 8, torch.device("npu"))
    mapping = LoRAMapping(tuple(request_of_token), tuple(sampled or request_of_token), is_prefill=True)
    made.update_metadata(mapping, SLOTS, ADAPTERS + 1, 100)
    return made


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.randn(*shape) / shape[-1] ** 0.5).to(dtype)


def contribution(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, ids: list[int], scale: float) -> torch.Tensor:
    """``scale * B @ A @ x`` of each row's adapter in float64, zero without one."""
    result = torch.zeros(x.shape[0], b.shape[2], dtype=torch.float64)
    for row, adapter in enumerate(ids):
        if adapter:
            slot = SLOTS.index(adapter)
            result[row] = scale * b[slot, 0].double() @ (a[slot, 0].double() @ x[row].double())
    return result


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "bfloat16"])
@pytest.mark.parametrize("rank", [4, 32], ids=["rank-below-slice", "rank-above-slice"])
def test_linear_with_slices_of_the_output(dtype: torch.dtype, rank: int) -> None:
    torch.manual_seed(0)
    ids, slices = [11, 0, 13, 13, 0, 11], (16, 8, 8)
    x, y = normal(len(ids), 24, dtype=dtype), normal(len(ids), sum(slices), dtype=dtype)
    a = [normal(ADAPTERS, 1, rank, 24, dtype=dtype) for _ in slices]
    b = [normal(ADAPTERS, 1, width, rank, dtype=dtype) for width in slices]
    result = y.npu()
    on_device = [tuple(it.npu() for it in weights) for weights in (a, b)]
    wrapper(ids).add_lora_linear(result, x.npu(), *on_device, 2.0, slices)
    added = torch.cat([contribution(x, *pair, ids, 2.0) for pair in zip(a, b)], dim=1)
    assert (result.cpu().double() - y.double() - added).abs().max() < TOLERANCE[dtype]
    without = [row for row, adapter in enumerate(ids) if not adapter]
    assert torch.equal(result.cpu()[without], y[without])


def test_what_lies_in_other_slots_does_not_leak() -> None:
    a, b = normal(ADAPTERS, 1, 4, 24), normal(ADAPTERS, 1, 8, 4)
    a[1], b[1] = torch.inf, torch.nan
    result = torch.zeros(2, 8, device="npu")
    wrapper([11, 0]).add_lora_linear(result, normal(2, 24).npu(), (a.npu(),), (b.npu(),), 1.0, (8,))
    assert result.isfinite().all()


def test_rows_beyond_the_step_get_nothing_before_any_step_had_them() -> None:
    a, b = normal(ADAPTERS, 1, 4, 24), normal(ADAPTERS, 1, 8, 4)
    result = torch.zeros(5, 8, device="npu")
    wrapper([11, 13]).add_lora_linear(result, normal(5, 24).npu(), (a.npu(),), (b.npu(),), 1.0, (8,))
    assert result[:2].cpu().abs().amin() > 0
    assert not result[2:].cpu().any()


def test_an_output_that_is_not_added_to_is_replaced() -> None:
    x, a, b = normal(1, 24), normal(ADAPTERS, 1, 4, 24), normal(ADAPTERS, 1, 8, 4)
    result = torch.full((1, 8), 7.0, device="npu")
    wrapper([13]).add_lora_linear(result, x.npu(), (a.npu(),), (b.npu(),), 1.0, (8,), add_inputs=False)
    assert (result.cpu().double() - contribution(x, a, b, [13], 1.0)).abs().max() < 1e-5


def test_logits_follow_the_sampled_rows() -> None:
    ids = [0, 13]
    x, a, b = normal(2, 24), normal(ADAPTERS, 1, 4, 24), normal(ADAPTERS, 1, 40, 4)
    result = torch.zeros(2, 32, device="npu")  # the vocabulary without its padding
    wrapper([11] * 5 + [13] * 2, ids).add_lora_logits(result, x.npu(), a.npu(), b.npu(), 0.5)
    assert (result.cpu().double() - contribution(x, a, b, ids, 0.5)[:, :32]).abs().max() < 1e-5


def test_embedding() -> None:
    ids = [11, 0, 13]
    x, b = normal(3, 4), normal(ADAPTERS, 1, 8, 4)
    result = torch.ones(3, 8, device="npu")
    wrapper(ids).add_lora_embedding(result, x.npu(), b.npu())
    added = [b[SLOTS.index(it), 0] @ row if it else torch.zeros(8) for it, row in zip(ids, x)]
    assert torch.allclose(result.cpu(), 1 + torch.stack(added), atol=1e-5)
