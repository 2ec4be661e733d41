"""Expert load balancing: which rank holds which experts, and how to get there. No vLLM, no torch_npu.

`Problem` and `Plan` are what a policy is asked and what comes of it; `load_policy` finds a policy by name, `plan` asks
it and checks the answer. `planner` does that in another process; `transfer`, `maps`, `loads`, `routing` and `metrics`
have what is around it.
"""

from ascend_moe.eplb.placement import InvalidPlacementError, initial_placement, slots_per_rank
from ascend_moe.eplb.planning import GROUP, PolicyError, load_policy, plan, policy_names
from ascend_moe.eplb.problem import LayerStatistics, Plan, Policy, Problem, Proposal
from ascend_moe.eplb.validity import check

__all__ = [
    "GROUP",
    "InvalidPlacementError",
    "LayerStatistics",
    "Plan",
    "Policy",
    "PolicyError",
    "Problem",
    "Proposal",
    "check",
    "initial_placement",
    "load_policy",
    "plan",
    "policy_names",
    "slots_per_rank",
]
