"""Balancing experts while an engine serves: what vLLM's ``--enable-eplb`` means on Ascend."""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import torch
from vllm.config import get_current_vllm_config
from vllm.distributed import get_eplb_group
from vllm.distributed.parallel_state import get_node_count
from vllm.logger import init_logger

from ascend_moe.eplb.arrays import Floats
from ascend_moe.eplb.maps import MapError, write_map
from ascend_moe.eplb.metrics import plan_metrics
from ascend_moe.eplb.mover import ExpertMover, TransferError
from ascend_moe.eplb.problem import Plan, Problem
from ascend_moe.eplb.transfer import LayerTransfers, first_replicas, transfers_of
from ascend_moe.vllm.balanced_model import BalancedModel
from ascend_moe.vllm.config import MoEConfig
from ascend_moe.vllm.plans import Plans

if TYPE_CHECKING:
    from vllm.config import ModelConfig, ParallelConfig
    from vllm.model_executor.models.interfaces import MixtureOfExperts

# vLLM configures the loggers below its own.
logger = init_logger(f"vllm.{__name__}")


class _Change:
    """One model on its way to a new placement; without plan while that is awaited."""

    def __init__(self, model: BalancedModel, problem: Problem, *, from_map: bool = False) -> None:
        self.model = model
        self.problem = problem
        self.from_map = from_map
        self.plan: Plan | None = None
        self.transfers: deque[LayerTransfers] = deque()


class EngineBalancer:
    """See :class:`vllm_ascend.api.ExpertBalancer`.

    Layers count the choices of their experts in the last ``window_size`` steps of every ``step_interval`` steps. Then
    rank 0 has a process of its own plan a placement; all ranks serve on meanwhile, and after every further step move
    the experts of one layer and switch its map. Without ``use_async`` they wait for plan and transfers. What fails
    leaves the layer as it is: an error in the log says what happened, and the next interval tries again.
    """

    is_async = False

    def __init__(self, parallel_config: ParallelConfig, device: torch.device) -> None:
        engine = get_current_vllm_config()
        self._config, self._settings = MoEConfig.of(engine).eplb, parallel_config.eplb_config
        self._main_model = engine.model_config
        self._group = get_eplb_group()
        ranks, nodes = self._group.world_size, get_node_count()
        self._nodes = nodes if ranks % nodes == 0 else 1
        self._plans = Plans(self._config, self._group)
        self._mover = ExpertMover(self._group.device_group, self._group.cpu_group)
        self._models: list[BalancedModel] = []
        self._changes: deque[_Change] = deque()
        # As in vLLM, the first interval is a quarter of the others.
        self._steps = self._settings.step_interval - self._settings.step_interval // 4
        self._counting = True
        self._enabled = torch.ones((), dtype=torch.bool, device=device)

    def add_model(self, model: MixtureOfExperts, model_config: ModelConfig) -> None:
        """Balance a model; the main one begins with the placement of the map file, if there is one.

        Raises:
            TransferError: a rank is gone.
            ValueError: ranks whose experts have different tensors.
        """
        balanced = BalancedModel(model, self._group.world_size, self._enabled)
        for layer in range(len(balanced.placement)):
            self._mover.check(layer, balanced.tensors(layer))
            self._fill(layer, balanced)
        self._models.append(balanced)
        if model_config is self._main_model and self._config.map_file is not None:
            unknown = np.zeros((len(balanced.placement), model.num_logical_experts))
            self._changes.append(_Change(balanced, self._problem(balanced, unknown), from_map=True))

    def _fill(self, layer: int, model: BalancedModel) -> None:
        """Give further replicas the weights of the first one: not every model of vLLM loads them."""
        tensors = model.tensors(layer)
        self._mover.commit(self._mover.receive(first_replicas(layer, model.placement[layer]), tensors), tensors)

    def step(self, is_dummy: bool = False, is_profile: bool = False, log_stats: bool = False) -> None:
        """Count the step, go on with the changes under way, and begin new ones when it is time."""
        if is_profile:
            self._reserve()
            return
        if log_stats and self._steps % self._settings.log_balancedness_interval == 0:
            self._log_balance()
        for model in self._models:
            model.end_of_step(self._counting and not is_dummy)
        self._go_on(wait=False)
        self._steps += 1
        if self._steps >= self._settings.step_interval:
            self._steps = 0
            self._begin()
        self._counting = self._settings.step_interval - self._steps <= self._settings.window_size
        self._enabled.fill_(self._counting or log_stats)

    def _begin(self) -> None:
        """Ask for plans, unless the last ones are still being carried out."""
        if self._changes:
            return
        for model in self._models:
            loads = model.take_loads(self._group.device_group)
            if loads.any():
                self._changes.append(_Change(model, self._problem(model, loads)))
        while self._changes and not self._settings.use_async:
            self._go_on(wait=True)

    def _go_on(self, *, wait: bool) -> None:
        """Take the next step of the changes under way: fetch a plan or move a layer."""
        if not self._changes:
            return
        change = self._changes[0]
        if change.plan is None:
            answer = (
                self._plans.from_map(change.problem)
                if change.from_map
                else self._plans.fetch(change.problem, wait=wait)
            )
            if answer is None:
                return
            if isinstance(answer, str):
                self._changes.popleft()
                self._log(logging.ERROR, "%s", answer)
                return
            change.plan = answer
            change.transfers = deque(transfers_of(answer, change.problem.placement, self._nodes))
            self._report(answer, change.model.expert_bytes)
        elif change.transfers and not self._move(change.model, change.transfers.popleft(), change.plan):
            self._changes.popleft()
            return
        if not change.transfers:
            self._changes.popleft()
            self._log(logging.INFO, "the new placement is in use in %d layers", len(change.plan.order))
            self._record(change.model)

    def _move(self, model: BalancedModel, transfers: LayerTransfers, plan: Plan) -> bool:
        """Move the experts of a layer and switch its map; False, and nothing changed, if that failed."""
        tensors = model.tensors(transfers.layer)
        try:
            received = self._mover.receive(transfers, tensors)
        except TransferError as error:
            logger.error("EPLB: %s", error)  # every rank knows of other peers
            return False
        self._mover.commit(received, tensors)
        model.switch(transfers.layer, plan.placement[transfers.layer])
        return True

    def _problem(self, model: BalancedModel, loads: Floats) -> Problem:
        return Problem(loads, model.placement.copy(), self._nodes)

    def _record(self, model: BalancedModel) -> None:
        """Write the placement of the main model, which is added last, to the file."""
        if self._config.record_file is None or self._group.rank_in_group != 0 or model is not self._models[-1]:
            return
        try:
            write_map(self._config.record_file, model.placement)
        except MapError as error:
            self._log(logging.ERROR, "%s", error)

    def _report(self, plan: Plan, expert_bytes: int) -> None:
        it = plan_metrics(plan, expert_bytes)
        self._log(
            logging.INFO,
            "%s planned in %.3f s: largest over mean load %.3f, was %.3f; in %d layers %d experts move, %d bytes",
            plan.policy,
            it.planning_seconds,
            it.imbalance_after,
            it.imbalance_before,
            it.changed_layers,
            it.moved_experts,
            it.moved_bytes,
        )

    def _log(self, level: int, message: str, *values: object) -> None:
        if self._group.rank_in_group == 0:
            logger.log(level, "EPLB: " + message, *values)

    def _reserve(self) -> None:
        """Take the memory of a layer whose experts all come from other ranks."""
        for model in self._models:
            reserved = [torch.empty_like(it) for it in model.tensors(0).values()]
            del reserved

    def _log_balance(self) -> None:
        for model in self._models:
            loads = model.step_loads(self._group.device_group)
            mean, largest = loads.mean(axis=1).sum(), loads.max(axis=1).sum()
            if largest:
                balance = mean / largest
                self._log(logging.INFO, "%.1f tokens a rank, at most %.0f, balancedness %.4f", mean, largest, balance)
