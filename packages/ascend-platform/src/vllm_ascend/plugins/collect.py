"""Reading the components: which are installed, what they claim, and what is wrong with them.

Nothing raises here. vLLM swallows errors of plugins, so every problem is kept and raised where it is seen: in
``AscendPlatform.check_and_update_config`` and before layers are built.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from vllm_ascend.api import Claim, ClaimKind, ComponentError, SocProfile
from vllm_ascend.plugins.collector import Collector
from vllm_ascend.plugins.groups import GROUPS, SOC, ComponentGroup
from vllm_ascend.soc import BUILT_IN, DEFAULT_PROFILE, SocError, active_profile

OURS = "vllm-ascend"


@dataclass(frozen=True)
class Problem:
    """Something wrong with one component, or with the choice of the SoC family.

    Attributes:
        component: the entry point's name; None for the choice of the family, which is no component's fault.
        distribution: who provides it, with version.
        why: what is wrong.
        mend: what to do.
    """

    component: str | None
    distribution: str
    why: str
    mend: str

    @property
    def who(self) -> str:
        """Whose fault it is, for messages."""
        return "SoC family" if self.component is None else f"component {self.component!r} of {self.distribution}"

    def __str__(self) -> str:
        return f"{self.who}: {self.why}. {self.mend}"


@dataclass(frozen=True)
class Component:
    """One entry point of our groups."""

    name: str
    group: str
    distribution: str
    version: str
    value: str
    loaded: bool
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Registry:
    """Everything that was claimed, in one process and for one SoC family."""

    components: tuple[Component, ...]
    claims: Mapping[tuple[ClaimKind, str], Claim]
    sections: Mapping[str, type[BaseModel]]
    profiles: Mapping[str, SocProfile]
    soc: SocProfile
    problems: tuple[Problem, ...]

    def claim(self, kind: ClaimKind, name: str) -> Claim | None:
        """Who provides ``name``, or None."""
        return self.claims.get((kind, name))

    def names(self, kind: ClaimKind) -> tuple[str, ...]:
        """Every claimed name of a kind, sorted."""
        return tuple(sorted(name for claimed, name in self.claims if claimed is kind))

    def installed(self, group: ComponentGroup) -> tuple[Component, ...]:
        """The components of a group, whether they load or not."""
        return tuple(it for it in self.components if it.group == group.name)

    def missing(self, group: ComponentGroup, asked_for: str) -> str:
        """The message for something of ``group`` that was asked for and that nobody claims."""
        installed = self.installed(group)
        if not installed:
            return (
                f"{asked_for} needs {group.provides}, which the distribution {group.distribution} provides; it is not "
                f"installed: {group.install}"
            )
        who = ", ".join(f"{it.distribution} {it.version}" for it in installed)
        return (
            f"{asked_for} needs {group.provides}, and the installed component does not provide it: {who}. "
            f"A newer {group.distribution} may; see its README"
        )

    def raise_problems(self) -> None:
        """Raise one :class:`ComponentError` that names every problem, if there is one."""
        if self.problems:
            lines = "\n".join(f"  - {it}" for it in self.problems)
            raise ComponentError(f"vllm-ascend's components do not fit together:\n{lines}")


@dataclass
class _Reading:
    components: list[Component] = field(default_factory=list)
    claims: dict[tuple[ClaimKind, str], Claim] = field(default_factory=dict)
    sections: dict[str, type[BaseModel]] = field(default_factory=dict)
    profiles: dict[str, SocProfile] = field(default_factory=lambda: dict(BUILT_IN))
    problems: list[Problem] = field(default_factory=list)

    def read(self, group: ComponentGroup, points: Iterable[EntryPoint], soc: SocProfile) -> None:
        seen: dict[str, str] = {}
        for point in sorted(points, key=lambda it: (it.name, _distribution(it))):
            distribution, version = _distribution(point), point.dist.version if point.dist is not None else "?"
            if (first := seen.get(point.name)) is not None:
                self._conflict(point.name, f"the component name {point.name!r} in {group.name}", first, distribution)
                continue
            seen[point.name] = distribution
            collector = Collector(group.name, point.name, distribution, soc)
            why = _register(point, collector)
            if why is not None:
                mend = f"Repair or uninstall {distribution}"
                self.problems.append(Problem(point.name, f"{distribution} {version}", why, mend))
            else:
                self._take(collector)
            claims = tuple(collector.claims) if why is None else ()
            loaded = why is None
            self.components.append(
                Component(point.name, group.name, distribution, version, point.value, loaded, claims)
            )

    def _take(self, collector: Collector) -> None:
        for claim in collector.claims:
            first = self.claims.setdefault((claim.kind, claim.name), claim)
            if first is not claim:
                what = f"the {claim.kind} {claim.name!r}"
                self._conflict(claim.component, what, first.distribution, claim.distribution)
            elif claim.kind is ClaimKind.SOC:
                self.profiles[claim.name] = collector.profiles[claim.name]
            if claim.kind is ClaimKind.SOC and claim.name in BUILT_IN:
                self._conflict(claim.component, f"the {claim.kind} {claim.name!r}", OURS, claim.distribution)
        if collector.section is not None:
            if collector.component in self.sections:
                what = f"the section {collector.component!r} of --additional-config"
                self._conflict(collector.component, what, "a component of another group", collector.distribution)
            self.sections.setdefault(collector.component, collector.section)

    def _conflict(self, component: str, what: str, first: str, second: str) -> None:
        why = f"{what} is claimed twice, by {first} and by {second}"
        self.problems.append(Problem(component, second, why, f"Uninstall {first} or {second}"))


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown distribution"


def _register(point: EntryPoint, collector: Collector) -> str | None:
    """Load and call an entry point; the reason why it failed, or None."""
    try:
        register: Callable[[Any], None] = point.load()
        register(collector)
    except Exception as error:  # noqa: BLE001  foreign code raises anything; it is kept, and raised later by name
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{point.value} failed with {type(error).__name__}: {error} (at {where.filename}:{where.lineno})"
    return None


def _installed(group: str) -> Iterable[EntryPoint]:
    return entry_points(group=group)


def collect(
    soc: SocProfile | None = None,
    soc_key: str | None = None,
    points: Callable[[str], Iterable[EntryPoint]] = _installed,
) -> Registry:
    """Read every component and call its ``register``.

    Args:
        soc: the family to register for; None finds it.
        soc_key: the engine's ``soc_profile``, if it is known.
        points: the entry points of a group; those of the installed distributions unless given.
    """
    reading = _Reading()
    reading.read(SOC, points(SOC.name), soc or BUILT_IN[DEFAULT_PROFILE])
    if soc is None:
        try:
            soc = active_profile(reading.profiles, soc_key)
        except SocError as error:
            soc = BUILT_IN[DEFAULT_PROFILE]
            reading.problems.append(Problem(None, OURS, str(error), "See the README of vllm-ascend, 'SoC families'"))
    for group in GROUPS:
        if group is not SOC:
            reading.read(group, points(group.name), soc)
    for name, path in soc.layers.items():
        replaced = reading.claims.get((ClaimKind.LAYER, name))
        owner = reading.claims.get((ClaimKind.SOC, soc.name)) or replaced
        component, distribution = (owner.component, owner.distribution) if owner else (soc.name, OURS)
        reading.claims[ClaimKind.LAYER, name] = Claim(ClaimKind.LAYER, name, path, component, distribution)
    return Registry(
        tuple(reading.components),
        MappingProxyType(reading.claims),
        MappingProxyType(reading.sections),
        MappingProxyType(reading.profiles),
        soc,
        tuple(reading.problems),
    )


@lru_cache(maxsize=8)
def _cached(has_context: bool, soc_key: str | None) -> Registry:
    return collect(soc_key=soc_key)


def registry(soc_key: str | None = None) -> Registry:
    """The components of this process, read once before and once after it has an NPU context."""
    import torch

    return _cached(torch.npu.is_initialized(), soc_key)


def forget_components() -> None:
    """Read the components again when they are next asked for, after something was installed or uninstalled."""
    _cached.cache_clear()
