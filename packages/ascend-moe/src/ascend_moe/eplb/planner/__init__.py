"""Planning in a process of its own, which may die without hurting the one that serves."""

from ascend_moe.eplb.planner.process import PlannerDiedError, PlannerError, PlannerProcess, PlannerTimeoutError

__all__ = ["PlannerDiedError", "PlannerError", "PlannerProcess", "PlannerTimeoutError"]
