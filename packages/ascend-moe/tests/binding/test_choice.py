"""The exchange of a layer."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic import ValidationError
from vllm.config import VllmConfig
from vllm.model_executor.layers.fused_moe.config import FusedMoEParallelConfig

from ascend_moe.vllm.all_to_all import AllToAllExchange
from ascend_moe.vllm.choice import make_exchange
from ascend_moe.vllm.config import MoEConfig
from ascend_moe.vllm.exchange import AllGather, Exchange, NoExchange

ALONE = FusedMoEParallelConfig.make_no_parallel()
REPLICAS = dataclasses.replace(ALONE, dp_size=2, tp_size=2)
EXPERTS = dataclasses.replace(ALONE, dp_size=2, ep_size=2, use_ep=True)
EXPERTS_BY_TENSOR = dataclasses.replace(ALONE, ep_size=2, use_ep=True)


@pytest.mark.parametrize(
    ("parallel", "gather", "to_all"),
    [
        (ALONE, NoExchange, NoExchange),
        (REPLICAS, AllGather, AllGather),
        (EXPERTS, AllGather, AllToAllExchange),
        (EXPERTS_BY_TENSOR, NoExchange, AllToAllExchange),
    ],
    ids=["alone", "replicas", "expert-and-data", "expert-and-tensor"],
)
def test_choice(parallel: FusedMoEParallelConfig, gather: type[Exchange], to_all: type[Exchange]) -> None:
    assert type(make_exchange(parallel, MoEConfig(), "linear", 64)) is gather
    assert type(make_exchange(parallel, MoEConfig(exchange="all_to_all"), "linear", 64)) is to_all


def test_all_to_all_needs_experts_in_order() -> None:
    with pytest.raises(
        ValueError, match="'all_to_all' needs experts in order of their ranks, the placement is 'round_robin'"
    ):
        make_exchange(EXPERTS, MoEConfig(exchange="all_to_all"), "round_robin", 64)
    assert type(make_exchange(EXPERTS, MoEConfig(), "round_robin", 64)) is AllGather


def test_the_section_of_an_engine() -> None:
    assert MoEConfig.of(VllmConfig()) == MoEConfig(exchange="all_gather")
    chosen = VllmConfig(additional_config={"moe": {"exchange": "all_to_all"}, "allow_float32": True})
    assert MoEConfig.of(chosen).exchange == "all_to_all"
    with pytest.raises(ValidationError, match="exchange"):
        MoEConfig.of(VllmConfig(additional_config={"moe": {"exchange": "mc3"}}))
