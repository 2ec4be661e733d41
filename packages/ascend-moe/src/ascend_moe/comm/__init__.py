"""Bringing tokens to the ranks of their experts: one interface, three ways, and the choice between them."""

from ascend_moe.comm.all_gather import AllGather
from ascend_moe.comm.all_to_all import AllToAll
from ascend_moe.comm.choice import Method, Step, choose_method
from ascend_moe.comm.exchange import Arrived, Exchange, Tokens, compute_arrived, run
from ascend_moe.comm.mc2 import FusedDispatch
from ascend_moe.comm.ranks import ExpertRanks, SameTokens

__all__ = [
    "AllGather",
    "AllToAll",
    "Arrived",
    "Exchange",
    "ExpertRanks",
    "FusedDispatch",
    "Method",
    "SameTokens",
    "Step",
    "Tokens",
    "choose_method",
    "compute_arrived",
    "run",
]
