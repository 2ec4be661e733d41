"""What every way to bring tokens to their experts has in common."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import torch

from ascend_moe.experts import Activation, ExpertWeights, compute, expert_mlp
from ascend_moe.routing import Choice

Ticket = TypeVar("Ticket")


class Tokens(NamedTuple):
    """Tokens with their experts.

    Attributes:
        hidden: [tokens, hidden].
        choice: of every token; the experts are physical: rank r holds those from ``r * local`` on.
    """

    hidden: torch.Tensor
    choice: Choice


class Arrived(NamedTuple):
    """What a rank computes.

    Attributes:
        rows: [rows, hidden].
        experts: [rows, choices] int32, local slots; the number of slots stands for experts of other ranks. None where
            the rows are sorted by expert.
        weights: [rows, choices] float32, what each expert's result counts; None where the rows are sorted by expert.
        counts: [local experts] int64, rows of each expert where the rows are sorted by expert.
    """

    rows: torch.Tensor
    experts: torch.Tensor | None = None
    weights: torch.Tensor | None = None
    counts: torch.Tensor | None = None


class Exchange(Protocol[Ticket]):
    """One way to bring tokens to their experts and the results back.

    All ranks of the group call the four methods in turn, also a rank without tokens. What a step needs to know later
    is in the values that the methods return, so that steps may overlap.
    """

    def prepare(self, tokens: Tokens) -> Tokens:
        """This rank's part of tokens that several ranks hold."""
        ...

    def dispatch(self, tokens: Tokens) -> tuple[Arrived, Ticket]:
        """Send tokens to their experts' ranks; receive this rank's."""
        ...

    def combine(self, results: torch.Tensor, ticket: Ticket) -> torch.Tensor:
        """Send the results of :class:`Arrived` back; each token's weighted sum, [tokens of ``dispatch``, hidden]."""
        ...

    def finalize(self, sums: torch.Tensor, tokens: Tokens) -> torch.Tensor:
        """The sums of all tokens that ``prepare`` was given, [tokens, hidden]."""
        ...


def run(exchange: Exchange[Ticket], tokens: Tokens, weights: ExpertWeights, activation: Activation) -> torch.Tensor:
    """A whole layer on one rank: [tokens, hidden]."""
    part = exchange.prepare(tokens)
    arrived, ticket = exchange.dispatch(part)
    results = compute_arrived(arrived, weights, activation)
    return exchange.finalize(exchange.combine(results, ticket), tokens)


def compute_arrived(arrived: Arrived, weights: ExpertWeights, activation: Activation) -> torch.Tensor:
    """The local experts' results for the rows that came, [rows, hidden]."""
    if arrived.counts is not None:
        return expert_mlp(arrived.rows, arrived.counts, weights, activation)
    assert arrived.experts is not None
    assert arrived.weights is not None
    return compute(arrived.rows, Choice(arrived.weights, arrived.experts), weights, activation)
