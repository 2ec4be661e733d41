"""The entry-point groups of vllm-ascend and the distribution of ours that fills each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ComponentGroup:
    """One group of components.

    Attributes:
        name: the entry-point group.
        distribution: the distribution of ours that provides it.
        extra: the extra of vllm-ascend that installs that distribution.
        provides: what a user misses without it.
    """

    name: str
    distribution: str
    extra: str
    provides: str

    @property
    def install(self) -> str:
        """The command that installs our distribution for the group."""
        return f"pip install 'vllm-ascend[{self.extra}]'"


SOC = ComponentGroup("vllm_ascend.soc", "ascend-310p", "310p", "the 310P SoC family")
MOE = ComponentGroup("vllm_ascend.moe", "ascend-moe", "moe", "mixture-of-experts layers")
QUANTIZATION = ComponentGroup("vllm_ascend.quantization", "ascend-quant", "quant", "quantised models")
SPEC_DECODE = ComponentGroup("vllm_ascend.spec_decode", "ascend-specdecode", "specdecode", "speculative decoding")

GROUPS: tuple[ComponentGroup, ...] = (SOC, MOE, QUANTIZATION, SPEC_DECODE)
"""In the order in which they are read: SoC families first, because the others register for one."""


def group_of(name: str) -> ComponentGroup:
    """The group by its entry-point group name."""
    return next(it for it in GROUPS if it.name == name)
