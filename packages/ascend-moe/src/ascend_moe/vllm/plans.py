"""Plans for all ranks, made by the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.distributed as dist

from ascend_moe.eplb.maps import MapError, read_map
from ascend_moe.eplb.planner import PlannerError, PlannerProcess
from ascend_moe.eplb.planning import plan
from ascend_moe.eplb.policies.fixed import FixedPolicy
from ascend_moe.eplb.problem import Plan, Problem

if TYPE_CHECKING:
    from vllm.distributed.parallel_state import GroupCoordinator

    from ascend_moe.vllm.config import BalancingConfig


class Plans:
    """Asks the policy, or reads the map file, on rank 0, and tells the others; all ranks make the same calls."""

    def __init__(self, config: BalancingConfig, group: GroupCoordinator) -> None:
        self._config = config
        self._group = group
        self._first = group.rank_in_group == 0
        self._planner = PlannerProcess(config.policy, config.options, timeout=config.timeout)
        if self._first and config.map_file is None:
            # Its process compiles the policy while the engine starts.
            self._planner.start()

    def fetch(self, problem: Problem, *, wait: bool) -> Plan | str | None:
        """The plan for a problem; asking again for the same problem goes on where the last call stopped.

        Args:
            problem: the same on all ranks.
            wait: until there is a plan.

        Returns:
            The plan; why there will be none; or None if it is not there yet.
        """
        return self._tell(self._ask(problem, wait) if self._first else None)

    def from_map(self, problem: Problem) -> Plan | str:
        """The plan that leads to the placement of the map file, or why there is none."""
        answer = self._tell(self._read(problem) if self._first else None)
        assert answer is not None
        return answer

    def _ask(self, problem: Problem, wait: bool) -> Plan | str | None:
        try:
            if not self._planner.busy:
                self._planner.submit(problem)
            # The planner itself gives up after its timeout.
            return self._planner.poll(self._config.timeout + 1 if wait else 0)
        except PlannerError as error:
            return str(error)

    def _read(self, problem: Problem) -> Plan | str:
        assert self._config.map_file is not None
        layers, ranks, _ = problem.placement.shape
        try:
            placement = read_map(self._config.map_file, layers, problem.experts, ranks).placement
            return plan(FixedPolicy(placement), problem, "map file")
        except MapError as error:
            return f"{error}; the placement stays"
        except ValueError as error:
            return f"the expert map {self._config.map_file} does not fit this engine: {error}; the placement stays"

    def _tell(self, answer: Plan | str | None) -> Plan | str | None:
        message = [answer]
        dist.broadcast_object_list(message, src=self._group.ranks[0], group=self._group.cpu_group)
        return message[0]
