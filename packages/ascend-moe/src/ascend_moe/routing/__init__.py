"""Routers as pure functions: from a token's logits to its experts and their weights."""

from ascend_moe.routing.balance import route_evenly
from ascend_moe.routing.reference import Choice, route, route_by_table
from ascend_moe.routing.replicas import choose_replicas, count_choices
from ascend_moe.routing.router import Route, choose_route
from ascend_moe.routing.rule import Groups, GroupScore, Rule, Scoring

__all__ = [
    "Choice",
    "GroupScore",
    "Groups",
    "Route",
    "Rule",
    "Scoring",
    "choose_replicas",
    "choose_route",
    "count_choices",
    "route",
    "route_by_table",
    "route_evenly",
]
