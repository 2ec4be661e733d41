"""The maps and counts of a model whose experts are balanced, seen from a layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from vllm.distributed.eplb.eplb_state import EplbLayerState
from vllm.model_executor.models.interfaces import MixtureOfExperts

from ascend_moe.routing import choose_replicas, count_choices
from ascend_moe.vllm.balanced_model import BalancedModel

EXPERTS, REDUNDANT, RANKS = 4, 2, 2


class Layer:
    """What a model hands a balancer of a layer with three slots: here of rank 0."""

    def __init__(self) -> None:
        self.eplb_state = EplbLayerState()
        self.weights = [torch.zeros(3, 10).npu(), torch.zeros(3, 2, dtype=torch.float16).npu()]

    def get_expert_weights(self) -> list[torch.Tensor]:
        return self.weights

    def set_eplb_state(
        self,
        moe_layer_idx: int,
        expert_load_view: torch.Tensor,
        logical_to_physical_map: torch.Tensor,
        logical_replica_count: torch.Tensor,
    ) -> None:
        self.eplb_state.set_layer_state(moe_layer_idx, expert_load_view, logical_to_physical_map, logical_replica_count)

    def route(self, experts: list[list[int]]) -> list[list[int]]:
        """As the router does."""
        state = self.eplb_state
        chosen = torch.tensor(experts, dtype=torch.int32).npu()
        physical = choose_replicas(chosen, state.logical_to_physical_map, state.logical_replica_count)
        count_choices(state.expert_load_view, physical, state.should_record_tensor)
        return physical.tolist()


class Model(MixtureOfExperts):
    num_moe_layers = 2
    num_logical_experts = EXPERTS
    num_redundant_experts = REDUNDANT

    def __init__(self) -> None:
        self.moe_layers = [Layer(), Layer()]
        self.expert_weights: list[list[torch.Tensor]] = []


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dist.ProcessGroup]:
    """A group of this process alone."""
    store = dist.FileStore(str(Path(tmp_path_factory.mktemp("store")) / "file"), 1)
    dist.init_process_group("hccl", store=store, rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def balanced(model: Model) -> BalancedModel:
    return BalancedModel(model, RANKS, torch.ones((), dtype=torch.bool).npu())


def test_the_maps_of_the_initial_placement(model: Model, balanced: BalancedModel) -> None:
    assert balanced.placement.tolist() == [[[0, 1, 2], [3, 0, 1]]] * 2
    # Token t takes replica (t + expert) mod 2 of experts 0 (slots 0 and 4) and 1 (1 and 5).
    assert model.moe_layers[1].route([[0, 1], [0, 1], [2, 3]]) == [[0, 5], [4, 1], [2, 3]]
    assert balanced.expert_bytes == 10 * 4 + 2 * 2
    assert balanced.tensors(1)["0"] is model.moe_layers[1].weights[0]


def test_a_layer_switches_in_place_and_alone(model: Model, balanced: BalancedModel) -> None:
    first, second = model.moe_layers
    address = second.eplb_state.logical_to_physical_map.data_ptr()
    balanced.switch(1, np.array([[3, 1, 2], [3, 0, 2]]))
    assert second.eplb_state.logical_to_physical_map.data_ptr() == address
    assert second.route([[0, 1], [0, 1], [2, 3]]) == [[4, 1], [4, 1], [2, 3]]
    assert first.route([[0, 1]]) == [[0, 5]]
    assert balanced.placement[:, 0].tolist() == [[0, 1, 2], [3, 1, 2]]


def test_loads_of_counted_steps_by_logical_expert(
    model: Model, balanced: BalancedModel, group: dist.ProcessGroup
) -> None:
    model.moe_layers[0].route([[0, 1], [0, 2], [0, 1]])
    balanced.end_of_step(counts=True)
    model.moe_layers[0].route([[3, 2]])
    balanced.end_of_step(counts=False)  # a step without requests, for example
    model.moe_layers[1].route([[3, 0]])
    assert balanced.step_loads(group).tolist() == [[0, 0], [1, 1]]
    balanced.end_of_step(counts=True)
    assert balanced.take_loads(group).tolist() == [[3, 2, 1, 0], [1, 0, 0, 1]]
    assert balanced.take_loads(group).tolist() == [[0] * 4] * 2


def test_experts_that_do_not_divide_among_the_ranks_are_refused(model: Model) -> None:
    with pytest.raises(ValueError, match="4 experts and 2 redundant ones are 6 physical experts, which do not divide"):
        BalancedModel(model, 4, torch.ones((), dtype=torch.bool).npu())
