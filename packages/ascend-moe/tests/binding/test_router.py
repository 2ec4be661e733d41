"""vLLM's routers, made by its own factory, and what stands in for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from vllm.distributed.eplb.eplb_state import EplbLayerState
from vllm.model_executor.layers.fused_moe.router.router_factory import create_fused_moe_router
from vllm.model_executor.models.llama4 import Llama4MoE

from ascend_moe.vllm.router import AscendRouter

from ..routing.oracle import route_token

EXPERTS = 16
LOGITS = torch.randn(6, EXPERTS, generator=torch.Generator().manual_seed(0)) * 2
BIAS = torch.randn(EXPERTS, generator=torch.Generator().manual_seed(1))
HIDDEN = torch.zeros(6, 4)


def ascend(**settings: Any) -> AscendRouter:
    stock = create_fused_moe_router(global_num_experts=EXPERTS, indices_type_getter=lambda: torch.int32, **settings)
    return AscendRouter.instead_of(stock, "model.layers.0.mlp.experts")


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what a model asks of vLLM, and the same in the oracle's words
    "mixtral": ({"renormalize": True}, {"scoring": "softmax", "renormalize": True}),
    "qwen2-moe": ({"renormalize": False}, {"scoring": "softmax", "renormalize": False}),
    "sigmoid": ({"renormalize": False, "scoring_func": "sigmoid"}, {"scoring": "sigmoid", "renormalize": False}),
    "minimax": (
        {"renormalize": True, "scoring_func": "sigmoid", "e_score_correction_bias": BIAS},
        {"scoring": "sigmoid", "renormalize": True, "bias": BIAS.tolist()},
    ),
    "deepseek-v2": (
        {"renormalize": False, "use_grouped_topk": True, "num_expert_group": 4, "topk_group": 2},
        {"scoring": "softmax", "renormalize": False, "groups": (4, 2, "max")},
    ),
    "deepseek-v3": (
        {
            "renormalize": True,
            "use_grouped_topk": True,
            "num_expert_group": 4,
            "topk_group": 2,
            "scoring_func": "sigmoid",
            "e_score_correction_bias": BIAS,
            "routed_scaling_factor": 2.5,
        },
        {
            "scoring": "sigmoid",
            "renormalize": True,
            "groups": (4, 2, "top2_sum"),
            "bias": BIAS.tolist(),
            "scale": 2.5,
        },
    ),
    "deepseek-v4": (
        {
            "renormalize": True,
            "scoring_func": "sqrtsoftplus",
            "e_score_correction_bias": BIAS,
            "routed_scaling_factor": 1.5,
        },
        {"scoring": "sqrtsoftplus", "renormalize": True, "bias": BIAS.tolist(), "scale": 1.5},
    ),
}


@pytest.mark.parametrize(("settings", "oracle"), CASES.values(), ids=CASES)
def test_does_what_the_model_asked_for(settings: dict[str, Any], oracle: dict[str, Any]) -> None:
    on_device = {name: it.npu() if isinstance(it, torch.Tensor) else it for name, it in settings.items()}
    weights, experts = ascend(top_k=3, **on_device).select_experts(HIDDEN.npu(), LOGITS.npu())
    expected = [route_token(row, top_k=3, **oracle) for row in LOGITS.double().tolist()]
    assert experts.dtype == torch.int32
    assert experts.tolist() == [row for _, row in expected]
    torch.testing.assert_close(weights.cpu(), torch.tensor([row for row, _ in expected]), rtol=1e-5, atol=1e-7)


def test_a_models_own_function_stays() -> None:
    router = ascend(top_k=1, renormalize=False, custom_routing_function=Llama4MoE.custom_routing_function)
    weights, experts = router.select_experts(HIDDEN.npu(), LOGITS.npu())
    assert experts.flatten().tolist() == [max(range(EXPERTS), key=row.__getitem__) for row in LOGITS.tolist()]
    torch.testing.assert_close(weights.cpu(), LOGITS.amax(1, keepdim=True).sigmoid())


def test_a_table_of_experts_needs_the_tokens() -> None:
    table = torch.tensor([[3, 1], [15, 0]], dtype=torch.int32).npu()
    router = ascend(top_k=2, scoring_func="sqrtsoftplus", hash_indices_table=table)
    tokens = torch.tensor([1, 0, 0, 1, 1, 0]).npu()
    _, experts = router.select_experts(HIDDEN.npu(), LOGITS.npu(), input_ids=tokens)
    assert experts.tolist() == [table[it].tolist() for it in tokens]
    with pytest.raises(ValueError, match="experts are looked up by token, but the layer was called without input_ids"):
        router.select_experts(HIDDEN.npu(), LOGITS.npu())


def test_whoever_asked_vllms_router_sees_the_experts() -> None:
    stock = create_fused_moe_router(top_k=2, global_num_experts=EXPERTS)
    router = AscendRouter.instead_of(stock, "layer")
    seen: list[torch.Tensor] = []
    stock.set_capture_fn(seen.append)
    _, experts = router.select_experts(HIDDEN.npu(), LOGITS.npu())
    assert [it.tolist() for it in seen] == [experts.tolist()]


def balanced(logical: int, physical: int) -> EplbLayerState:
    """Physical expert p holds logical expert p mod their number; the first ones have two replicas."""
    replicas = torch.zeros(logical, 2, dtype=torch.int64)
    replicas[:, 0] = torch.arange(logical)
    replicas[: physical - logical, 1] = torch.arange(logical, physical)
    counts = torch.ones(logical, dtype=torch.int64)
    counts[: physical - logical] = 2
    return EplbLayerState(
        expert_load_view=torch.zeros(physical, dtype=torch.int32).npu(),
        logical_to_physical_map=replicas.npu(),
        logical_replica_count=counts.npu(),
        should_record_tensor=torch.ones((), dtype=torch.bool).npu(),
    )


@pytest.mark.parametrize("even_load", [False, True], ids=["router", "even-load"])
def test_physical_experts_where_experts_are_balanced(even_load: bool) -> None:
    # va#8501, va#8864: the number of physical experts taken for that of logical ones. va#5933: no mapping at all.
    state, seen = balanced(128, 130), []
    stock = create_fused_moe_router(
        top_k=8, global_num_experts=130, renormalize=True, eplb_state=state, indices_type_getter=lambda: torch.int32
    )
    router = AscendRouter.instead_of(stock, "layer", even_load=even_load)
    router.set_capture_fn(seen.append)
    logits = torch.randn(40, 128, generator=torch.Generator().manual_seed(2))
    _, physical = router.select_experts(torch.zeros(40, 4).npu(), logits.npu())
    (logical,) = (it.cpu() for it in seen)
    assert logical.max() < 128
    assert (physical.cpu() % 128 == logical).all()
    assert state.expert_load_view.tolist() == torch.bincount(physical.cpu().flatten(), minlength=130).tolist()
    assert state.expert_load_view[[0, 1]].sum() > 0
    assert state.expert_load_view[[128, 129]].sum() > 0
    if even_load:
        assert torch.bincount(logical.flatten().long(), minlength=128).unique().tolist() == [2, 3]


def test_a_router_without_a_replacement_is_refused_with_its_layer() -> None:
    with pytest.raises(
        NotImplementedError, match=r"model\.layers\.0\.mlp\.experts is routed by vLLM's ZeroExpertRouter"
    ):
        ascend(top_k=2, zero_expert_type="identity", num_logical_experts=14, e_score_correction_bias=BIAS)
