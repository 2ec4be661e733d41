"""Which implementation follows a rule on an NPU."""

from __future__ import annotations

from typing import Protocol

import torch

from ascend_moe.routing import reference, vendor
from ascend_moe.routing.reference import Choice
from ascend_moe.routing.rule import Rule


class Route(Protocol):
    """A function from logits to experts."""

    def __call__(self, rule: Rule, logits: torch.Tensor, bias: torch.Tensor | None = None) -> Choice:
        """See :func:`ascend_moe.routing.reference.route`."""
        ...


def choose_route(rule: Rule, experts: int) -> Route:
    """The vendor's operator where it fits, else torch operators.

    Raises:
        ValueError: the rule does not fit the number of experts.
    """
    rule.check(experts)
    return vendor.route if vendor.fits(rule, experts) else reference.route
