"""Few transfers per step: rebalancing that serving hardly notices."""

from __future__ import annotations

from ascend_moe.eplb.kernels.limited import improve
from ascend_moe.eplb.problem import Problem, Proposal


class SwiftBalancerPolicy:
    """Improve the present placement step by step, as long as the transfers allowed last.

    A step is the best exchange of two experts or the best change of replication for the largest rank load.

    Every layer is judged by its own loads.

    Args:
        max_transfers: most experts of a layer that any rank sends to any other one.
        threshold: a layer whose largest rank load is below this many times the mean is left as it is.
        min_gain: share of the mean rank load by which one step must lower the largest.
        max_steps: most steps per layer.
        within_node: whether experts move only between ranks of the same node.

    Raises:
        ValueError: a limit below 1, a threshold below 1 or a negative gain.
    """

    def __init__(
        self,
        *,
        max_transfers: int = 1,
        threshold: float = 1.01,
        min_gain: float = 0.01,
        max_steps: int = 100,
        within_node: bool = False,
    ) -> None:
        for name, value in {"max_transfers": max_transfers, "threshold": threshold, "max_steps": max_steps}.items():
            if value < 1:
                raise ValueError(f"{name} is {value}; it is at least 1")
        if min_gain < 0:
            raise ValueError(f"min_gain is {min_gain}; it is at least 0")
        self.max_transfers = max_transfers
        self.threshold = threshold
        self.min_gain = min_gain
        self.max_steps = max_steps
        self.within_node = within_node

    def place(self, problem: Problem) -> Proposal:
        """Propose a placement of `problem`."""
        placement = problem.placement.copy()
        ranks_per_node = problem.ranks // problem.nodes
        for layer in range(problem.layers):
            improve(
                placement[layer],
                problem.loads[layer][None],
                self.max_transfers,
                self.within_node,
                ranks_per_node,
                self.threshold,
                self.min_gain,
                self.max_steps,
            )
        return Proposal(placement)
