"""The exchange of a layer."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from vllm.config import VllmConfig
from vllm.model_executor.layers.fused_moe.config import FusedMoEParallelConfig

from ascend_moe.vllm.choice import fused_capacity, make_exchange
from ascend_moe.vllm.config import MoEConfig
from ascend_moe.vllm.exchange import AllGather, Exchange, NoExchange
from ascend_moe.vllm.layer_facts import LayerFacts
from ascend_moe.vllm.per_step import PerStepExchange

ALONE = FusedMoEParallelConfig.make_no_parallel()
REPLICAS = dataclasses.replace(ALONE, dp_size=2, tp_size=2)
EXPERTS = dataclasses.replace(ALONE, dp_size=2, ep_size=2, use_ep=True)
EXPERTS_BY_TENSOR = dataclasses.replace(ALONE, ep_size=2, use_ep=True)


def make(
    parallel: FusedMoEParallelConfig,
    exchange: str,
    soc: str = "A2",
    dtype: torch.dtype = torch.bfloat16,
    placement: str = "linear",
    **facts: Any,
) -> Exchange:
    usual = {"ranks": parallel.ep_size, "local_experts": 8, "top_k": 2, "most_tokens": 64, "capacity": 64}
    layer = LayerFacts(soc=soc, **{**usual, **facts})
    return make_exchange(parallel, layer, dtype, MoEConfig(exchange=exchange), placement)


@pytest.mark.parametrize(
    ("parallel", "gather", "other"),
    [
        (ALONE, NoExchange, NoExchange),
        (REPLICAS, AllGather, AllGather),
        (EXPERTS, AllGather, PerStepExchange),
        (EXPERTS_BY_TENSOR, NoExchange, PerStepExchange),
    ],
    ids=["alone", "replicas", "expert-and-data", "expert-and-tensor"],
)
def test_what_a_user_chooses(parallel: FusedMoEParallelConfig, gather: type[Exchange], other: type[Exchange]) -> None:
    assert type(make(parallel, "all_gather")) is gather
    assert type(make(parallel, "all_to_all")) is other
    assert type(make(parallel, "fused_dispatch")) is other


@pytest.mark.parametrize(
    ("settings", "exchange"),
    [
        # Two ranks of A2 never use anything but all-gather, so that nothing has to be decided by step.
        ({"soc": "A2"}, AllGather),
        ({"soc": "A2", "ranks": 16}, PerStepExchange),
        ({"soc": "A3"}, PerStepExchange),
        ({"soc": "A3", "dtype": torch.float32}, PerStepExchange),
        ({"soc": "A5", "dtype": torch.float32}, AllGather),
        ({"soc": "310P"}, AllGather),
        ({"soc": "A3", "placement": "round_robin"}, AllGather),
    ],
    ids=["A2", "A2-16-ranks", "A3", "A3-fp32", "A5-fp32", "310P", "A3-round-robin"],
)
def test_what_is_chosen_by_itself(settings: dict[str, Any], exchange: type[Exchange]) -> None:
    assert type(make(EXPERTS, "auto", **settings)) is exchange


@pytest.mark.parametrize(("soc", "tokens", "capacity"), [("A2", 4096, 256), ("A3", 4096, 512), ("A3", 48, 48)])
def test_the_capacity_of_the_fused_operators(soc: str, tokens: int, capacity: int) -> None:
    assert fused_capacity(soc, tokens) == capacity


@pytest.mark.parametrize("exchange", ["all_to_all", "fused_dispatch"])
def test_sending_needs_experts_in_order(exchange: str) -> None:
    with pytest.raises(ValueError, match=f"'{exchange}' needs experts in order of their ranks, the placement is 'roun"):
        make(EXPERTS, exchange, placement="round_robin")
    assert type(make(EXPERTS, "all_gather", placement="round_robin")) is AllGather


def test_the_fused_operators_need_half_precision() -> None:
    with pytest.raises(ValueError, match="'fused_dispatch' takes float16 and bfloat16, the model is float32"):
        make(EXPERTS, "fused_dispatch", dtype=torch.float32)


def test_the_section_of_an_engine() -> None:
    assert MoEConfig.of(VllmConfig()) == MoEConfig(exchange="auto")
    chosen = VllmConfig(additional_config={"moe": {"exchange": "all_to_all"}, "allow_float32": True})
    assert MoEConfig.of(chosen).exchange == "all_to_all"
    with pytest.raises(ValidationError, match="exchange"):
        MoEConfig.of(VllmConfig(additional_config={"moe": {"exchange": "mc3"}}))
    with pytest.raises(ValidationError, match="no policy is called 'best'; there are default, flashlb, optimal"):
        MoEConfig.of(VllmConfig(additional_config={"moe": {"eplb": {"policy": "best"}}}))
