"""A model whose experts are balanced: its maps and counts on the device, its experts' tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist

from ascend_moe.eplb.arrays import Floats, Integers
from ascend_moe.eplb.loads import logical_loads
from ascend_moe.eplb.placement import initial_placement
from ascend_moe.eplb.routing import replicas

if TYPE_CHECKING:
    from vllm.model_executor.models.interfaces import MixtureOfExperts


class BalancedModel:
    """What one model of an engine holds for balancing.

    The tensors that the model's layers use keep their addresses and shapes, so that captured graphs follow a change.

    Attributes:
        placement: the logical expert in every slot, [layers, ranks, slots].
    """

    def __init__(self, model: MixtureOfExperts, ranks: int, enabled: torch.Tensor) -> None:
        """Hand the model its maps.

        Args:
            model: with its weights loaded as vLLM does: physical expert p holds logical expert p mod their number.
            ranks: of the expert parallel group.
            enabled: scalar bool on the device, whether layers count.

        Raises:
            ValueError: as :func:`ascend_moe.eplb.slots_per_rank`.
        """
        layers, self._experts = model.num_moe_layers, model.num_logical_experts
        self.placement = initial_placement(layers, self._experts, ranks, model.num_redundant_experts)
        # No rank holds an expert twice, so that there are at most as many replicas as ranks.
        shape, device = (layers, self._experts, ranks), enabled.device
        self._replicas = torch.zeros(shape, dtype=torch.int64, device=device)
        self._counts = torch.zeros(shape[:2], dtype=torch.int64, device=device)
        self._step = torch.zeros(layers, self.placement[0].size, dtype=torch.int32, device=device)
        self._window = torch.zeros_like(self._step, dtype=torch.int64)
        for layer in range(layers):
            self.switch(layer, self.placement[layer])
        model.set_eplb_state(self._step, self._replicas, self._counts)
        for module in model.moe_layers:
            module.eplb_state.should_record_tensor = enabled
        self._tensors = [{str(number): tensor for number, tensor in enumerate(layer)} for layer in model.expert_weights]

    @property
    def expert_bytes(self) -> int:
        """Size of one expert of one layer with its scales."""
        return sum(it[0].nbytes for it in self._tensors[0].values())

    def tensors(self, layer: int) -> dict[str, torch.Tensor]:
        """Every tensor of a layer's experts, each [slots, numbers]."""
        return self._tensors[layer]

    def end_of_step(self, counts: bool) -> None:
        """Add what the step counted to the window, or forget it."""
        if counts:
            self._window += self._step
        self._step.zero_()

    def step_loads(self, group: dist.ProcessGroup) -> Floats:
        """Tokens of every rank in this step before :meth:`end_of_step`, [layers, ranks]."""
        return self._sum(self._step.long(), group).reshape(self.placement.shape).sum(axis=2)

    def take_loads(self, group: dist.ProcessGroup) -> Floats:
        """The loads of the window over all ranks of the group, [layers, experts]; a new window begins."""
        slots = self._sum(self._window.clone(), group)
        self._window.zero_()
        return logical_loads(slots.reshape(self.placement.shape), self.placement, self._experts)

    def switch(self, layer: int, placement: Integers) -> None:
        """Use a new placement [ranks, slots] of a layer, whose experts are in their slots, from the next step on."""
        table, counts = replicas(placement[None], self._experts)
        padded = np.zeros(self._replicas.shape[1:], dtype=np.int64)
        padded[:, : table.shape[2]] = table[0].clip(min=0)
        self._replicas[layer].copy_(torch.from_numpy(padded))
        self._counts[layer].copy_(torch.from_numpy(counts[0]))
        self.placement[layer] = placement

    @staticmethod
    def _sum(counts: torch.Tensor, group: dist.ProcessGroup) -> Floats:
        dist.all_reduce(counts, group=group)
        return counts.cpu().numpy().astype(np.float64)
