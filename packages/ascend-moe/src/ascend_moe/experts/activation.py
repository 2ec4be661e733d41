"""What stands between an expert's two products."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Self

import torch
import torch.nn.functional as F

OAI_ALPHA, OAI_LIMIT, OAI_BIAS = 1.702, 7.0, 1.0
STEP_LIMIT = 7.0


class Gate(StrEnum):
    """How the gate half is activated; the values are vLLM's names."""

    SILU = "silu"
    GELU = "gelu"
    GELU_TANH = "gelu_tanh"
    SWIGLU_OAI = "swigluoai"
    """gpt-oss: gate and up alternate in the columns."""
    SWIGLU_STEP = "swiglustep"
    """Step-3.5: the activated gate is clamped, not the gate."""


_ALIASES = {"swiglu": Gate.SILU, "gelu_pytorch_tanh": Gate.GELU_TANH}


@dataclass(frozen=True, slots=True)
class Activation:
    """A gated activation of rows [rows, 2 * intermediate] to [rows, intermediate], with its numbers.

    ====================== ==================================================================
    silu                   ``silu(gate) * up``; with a limit both are clamped before
    gelu, gelu_tanh        ``gelu(gate) * up``
    swigluoai              ``gate * sigmoid(alpha * gate) * (up + bias)``, both clamped before
    swiglustep             ``min(silu(gate), limit) * clamp(up, -limit, limit)``
    ====================== ==================================================================

    Clamping before: ``gate`` from above at ``limit``, ``up`` to ``[-limit, limit]``.

    Attributes:
        gate: the formula.
        limit: 0 does not clamp.
        alpha: the factor inside the sigmoid.
        bias: what is added to ``up``.
    """

    gate: Gate
    limit: float = 0.0
    alpha: float = 1.0
    bias: float = 0.0

    @classmethod
    def of(cls, name: str | Enum, limit: float | None = None) -> Self:
        """The activation of that name, with the numbers that its formula is published with.

        Args:
            name: a value of :class:`Gate`, ``"swiglu"``, ``"gelu_pytorch_tanh"``, or an enum of such a value.
            limit: a model's own limit; None keeps the formula's, which is no limit for ``silu``.

        Raises:
            ValueError: an unknown name, or a limit for a formula that has none.
        """
        word = name.value if isinstance(name, Enum) else name
        known = {str(gate): gate for gate in Gate} | _ALIASES
        if word not in known:
            raise ValueError(f"no expert activation is called {word!r}; there are {', '.join(known)}")
        gate = known[word]
        if limit and gate in (Gate.GELU, Gate.GELU_TANH):
            raise ValueError(f"the expert activation {word!r} takes no limit, {limit} was given")
        if gate is Gate.SWIGLU_OAI:
            return cls(gate, OAI_LIMIT if limit is None else limit, OAI_ALPHA, OAI_BIAS)
        if gate is Gate.SWIGLU_STEP:
            return cls(gate, STEP_LIMIT if limit is None else limit)
        return cls(gate, limit or 0.0)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        """``rows`` [rows, 2 * intermediate] on an NPU; the first half of the columns is the gate."""
        match self.gate:
            case Gate.SILU if not self.limit:
                return torch.ops.npu.npu_swiglu(rows)
            case Gate.SILU | Gate.SWIGLU_OAI:
                return torch.ops.npu.npu_clipped_swiglu(
                    rows,
                    alpha=self.alpha,
                    limit=self.limit or float("inf"),
                    bias=self.bias,
                    interleaved=self.gate is Gate.SWIGLU_OAI,
                )
        gate, up = rows.chunk(2, dim=-1)
        match self.gate:
            case Gate.SWIGLU_STEP:
                if not self.limit:
                    return torch.ops.npu.npu_swiglu(rows)
                return F.silu(gate).clamp_(max=self.limit).mul_(up.clamp(-self.limit, self.limit))
            case _:
                # In place on the fresh activation.
                return F.gelu(gate, approximate="tanh" if self.gate is Gate.GELU_TANH else "none").mul_(up)
