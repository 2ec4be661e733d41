"""Routers as pure functions: from a token's logits to its experts and their weights."""

from ascend_moe.routing.balance import route_evenly
from ascend_moe.routing.reference import Choice, route, route_by_table
from ascend_moe.routing.router import Route, choose_route
from ascend_moe.routing.rule import Groups, GroupScore, Rule, Scoring

__all__ = [
    "Choice",
    "GroupScore",
    "Groups",
    "Route",
    "Rule",
    "Scoring",
    "choose_route",
    "route",
    "route_by_table",
    "route_evenly",
]
