# SPDX-License-Identifier: Apache-2.0
"""The errors that refused calls raise."""

from __future__ import annotations

import os

ORACLE_VARIABLE = "ASCEND_SIM_ORACLE_FP32"
"""Set to 1 to let the attention operators take float32, for comparing tokens with a float32 model; no hardware does."""


def oracle_mode() -> bool:
    """Whether float32 attention is allowed (see :data:`ORACLE_VARIABLE`)."""
    return os.environ.get(ORACLE_VARIABLE, "").lower() in ("1", "true", "yes", "on")


def refuse(op: str, argument: str, given: object, allowed: object, hint: str = "") -> RuntimeError:
    """The error for an argument the hardware does not take; raise what it returns."""
    tail = f" {hint}" if hint else ""
    return RuntimeError(f"{op}: {argument} is {given}; the hardware allows {allowed}.{tail}")


def not_simulated(op: str, argument: str, given: object) -> NotImplementedError:
    """The error for what the hardware takes but no reference covers; raise what it returns."""
    return NotImplementedError(f"{op}: {argument}={given} is not simulated; no reference covers it")
