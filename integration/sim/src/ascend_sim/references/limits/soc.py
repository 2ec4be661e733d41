# SPDX-License-Identifier: Apache-2.0
"""SoC families, as the vendor's pages name them, and the one that calls are checked against."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum


class Family(StrEnum):
    """A family of SoCs that takes the same operators; values are the short names of the vendor's pages."""

    A1 = "A1"
    """Atlas training series: Ascend910A, ProA, ProB, PremiumA and the bare Ascend910B."""
    A2 = "A2"
    """Atlas A2: Ascend910B1 to B4."""
    A3 = "A3"
    """Atlas A3: Ascend910_93xx."""
    A5 = "A5"
    """Ascend 950PR and 950DT."""
    I310P = "310P"
    """Atlas inference series: Ascend310P."""


_PREFIXES = (
    ("Ascend310P", Family.I310P),
    ("Ascend910_93", Family.A3),
    ("Ascend950", Family.A5),
    *((f"Ascend910B{number}", Family.A2) for number in range(1, 5)),
    ("Ascend910", Family.A1),
)
_override: list[Family] = []


def family_of(soc: str) -> Family:
    """The family of a SoC name such as Ascend910B1.

    Raises:
        ValueError: If the name is of none.
    """
    for prefix, family in _PREFIXES:
        if soc.startswith(prefix):
            return family
    raise ValueError(f"{soc!r} is of no known SoC family: expected a name that starts with Ascend310P, 910 or 950")


_families: dict[str, Family] = {}


def active_family() -> Family:
    """The family of the simulated device (``ASCEND_SIM_SOC``), or the one :func:`as_family` has set."""
    if _override:
        return _override[-1]
    family = _families.get("")
    if family is None:
        from ascend_sim import runtime

        family = _families[""] = family_of(runtime.settings().soc)
    return family


@contextlib.contextmanager
def as_family(family: Family) -> Iterator[None]:
    """Check calls inside the block against ``family``, whatever the simulated device is; for tests of the table."""
    _override.append(family)
    try:
        yield
    finally:
        _override.pop()
