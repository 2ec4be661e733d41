"""The experts' computation on one rank: sorting tokens by expert, two grouped products, adding up."""

from ascend_moe.experts.activation import Activation, Gate
from ascend_moe.experts.layer import compute, local_numbers
from ascend_moe.experts.mlp import ExpertWeights, bias_dtype, expert_mlp
from ascend_moe.experts.permutation import Sorted, add_up, sort_by_expert

__all__ = [
    "Activation",
    "ExpertWeights",
    "Gate",
    "Sorted",
    "add_up",
    "bias_dtype",
    "compute",
    "expert_mlp",
    "local_numbers",
    "sort_by_expert",
]
