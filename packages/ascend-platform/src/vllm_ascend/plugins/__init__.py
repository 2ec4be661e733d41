"""Discovery of vllm-ascend's components: the single place that reads the entry-point groups ``vllm_ascend.*``."""

from vllm_ascend.plugins.collect import Component, Problem, Registry, collect, forget_components, registry
from vllm_ascend.plugins.commit import commit_layers, commit_quant_methods
from vllm_ascend.plugins.groups import GROUPS, ComponentGroup, group_of

__all__ = [
    "GROUPS",
    "Component",
    "ComponentGroup",
    "Problem",
    "Registry",
    "collect",
    "commit_layers",
    "commit_quant_methods",
    "forget_components",
    "group_of",
    "registry",
]
