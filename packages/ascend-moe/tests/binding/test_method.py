"""The method for experts without quantisation, on a layer with vLLM's weights."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.config import FusedMoEConfig, FusedMoEParallelConfig, RoutingMethodType
from vllm.v1.worker.workspace import init_workspace_manager, reset_workspace_manager

from ascend_moe.vllm.method import AscendUnquantizedFusedMoEMethod

from ..experts.oracle import dense_layer

EXPERTS, HIDDEN, INTERMEDIATE, TOP_K = 2, 16, 24, 2
CONFIG = FusedMoEConfig(
    num_experts=EXPERTS,
    experts_per_token=TOP_K,
    hidden_dim=HIDDEN,
    intermediate_size_per_partition=INTERMEDIATE,
    num_local_experts=EXPERTS,
    num_logical_experts=EXPERTS,
    activation=MoEActivation.SILU,
    device="npu",
    routing_method=RoutingMethodType.Renormalize,
    moe_parallel_config=FusedMoEParallelConfig.make_no_parallel(),
    in_dtype=torch.float32,
)


@pytest.fixture(autouse=True)
def worker() -> Iterator[None]:
    """What a worker sets up before it builds a model."""
    init_workspace_manager(torch.device("npu", 0))
    with set_current_vllm_config(VllmConfig()):
        yield
    reset_workspace_manager()


class Layer(torch.nn.Module):
    """What the method reads of a layer."""

    activation = MoEActivation.SILU
    apply_router_weight_on_input = False
    global_num_experts = EXPERTS
    expert_map = None


def load(param: torch.Tensor, seed: int) -> None:
    param.data.copy_(torch.randn(param.shape, generator=torch.Generator().manual_seed(seed)) / 2)


def loader() -> None:
    """Stands for the layer's weight loader."""


def build(config: FusedMoEConfig = CONFIG, dtype: torch.dtype = torch.float32) -> tuple[Layer, Any]:
    method, layer = AscendUnquantizedFusedMoEMethod(config), Layer()
    with torch.device("npu"):
        method.create_weights(layer, EXPERTS, HIDDEN, INTERMEDIATE, dtype, weight_loader=loader)
    for seed, param in enumerate(layer.parameters()):
        load(param, seed)
    return layer, method


def run(layer: Layer, method: Any) -> torch.Tensor:
    tokens = torch.randn(3, HIDDEN, generator=torch.Generator().manual_seed(9)).npu()
    weights, experts = torch.tensor([[0.25, 0.75]] * 3).npu(), torch.tensor([[1, 0]] * 3, dtype=torch.int32).npu()
    return method.apply(layer, tokens, weights, experts, None, None).cpu()


def expected(layer: Layer) -> torch.Tensor:
    tokens = torch.randn(3, HIDDEN, generator=torch.Generator().manual_seed(9))
    return dense_layer(tokens, [[0.25, 0.75]] * 3, [[1, 0]] * 3, layer.w13_weight.cpu(), layer.w2_weight.cpu())


def test_computes_the_dense_layer() -> None:
    layer, method = build()
    method.process_weights_after_loading(layer)
    torch.testing.assert_close(run(layer, method).double(), expected(layer), rtol=1e-5, atol=1e-5)
    assert not method.is_monolithic


def test_weights_can_be_loaded_any_number_of_times() -> None:
    # va#11548, va#12226, va#13012: transposed a second time when loaded again, or without their loader.
    layer, method = build()
    method.process_weights_after_loading(layer)
    first, kernel = run(layer, method), method.moe_kernel
    addresses = [it.data_ptr() for it in layer.parameters()]
    for _ in range(2):
        for seed, param in enumerate(layer.parameters()):
            assert param.weight_loader is loader
            load(param, seed)
        method.process_weights_after_loading(layer)
        assert torch.equal(run(layer, method), first)
    # What a captured graph refers to is still there.
    assert [it.data_ptr() for it in layer.parameters()] == addresses
    assert method.moe_kernel is kernel


@pytest.mark.parametrize(
    ("weights", "biases"), [(torch.bfloat16, torch.float32), (torch.float16, torch.float16)], ids=str
)
def test_biases_have_the_dtype_of_the_grouped_product(weights: torch.dtype, biases: torch.dtype) -> None:
    layer, _ = build(dataclasses.replace(CONFIG, has_bias=True), weights)
    assert {name: it.dtype for name, it in layer.named_parameters()} == {
        "w13_weight": weights,
        "w13_bias": biases,
        "w2_weight": weights,
        "w2_bias": biases,
    }
    assert layer.w13_bias.weight_loader is loader


def test_experts_that_cannot_be_computed_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="ascend-moe cannot compute these experts: .*RELU2 activation"):
        build(dataclasses.replace(CONFIG, activation=MoEActivation.RELU2))
