"""What a component can claim."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from vllm_ascend.api.errors import ClaimError

_OBJECT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_MODULE_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class ClaimKind(StrEnum):
    """The registries that claims end in; a name can be claimed once per kind."""

    LAYER = "layer"
    """vLLM's out-of-tree slot of a ``CustomOp`` or ``PluggableLayer``; the name is vLLM's class name."""
    QUANT_METHOD = "quant_method"
    """A ``QuantizationConfig``; the name is what ``--quantization`` and checkpoints say."""
    PROPOSER = "proposer"
    """A draft-token proposer; the name is the ``method`` of ``--speculative-config``."""
    OP_PROVIDER = "op_provider"
    """A module that registers implementations of ``vllm.ir`` ops; the name is the provider."""
    EXPERT_BALANCER = "expert_balancer"
    """An :class:`~vllm_ascend.api.ExpertBalancer`; the name is always ``eplb``, as in ``--enable-eplb``."""
    SOC = "soc"
    """A :class:`~vllm_ascend.api.SocProfile`; the name is the profile's."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One name, claimed by one component.

    Attributes:
        kind: the registry.
        name: the name in that registry.
        path: ``"package.module:Class"``, imported only where it is used; a plain module path for ``OP_PROVIDER``.
        component: the entry point's name.
        distribution: the distribution that declares the entry point.
    """

    kind: ClaimKind
    name: str
    path: str
    component: str
    distribution: str

    def __post_init__(self) -> None:
        """Check name and path without importing anything."""
        if not self.name.strip():
            raise ClaimError(f"{self.distribution} claims a {self.kind} with an empty name for {self.path!r}")
        is_module = self.kind is ClaimKind.OP_PROVIDER
        if not (_MODULE_PATH if is_module else _OBJECT_PATH).fullmatch(self.path):
            form = "package.module" if is_module else "package.module:Class"
            raise ClaimError(
                f"{self.distribution} claims the {self.kind} {self.name!r} with the path {self.path!r}; "
                f"it must have the form {form!r}"
            )
