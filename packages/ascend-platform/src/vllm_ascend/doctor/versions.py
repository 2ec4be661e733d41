"""Which distributions are installed, and whether their versions belong together."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution, requires, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from vllm_ascend.compat import SUPPORTED_VLLM
from vllm_ascend.doctor.report import Finding, Status

OURS = ("vllm-ascend", "ascend-kernels", "ascend-moe", "ascend-quant", "ascend-specdecode", "ascend-310p")
OPTIONAL = frozenset(OURS[2:])

PEERS: dict[str, tuple[SpecifierSet, str, str]] = {
    "vllm": (
        SUPPORTED_VLLM,
        "this release knows the interfaces of these versions",
        f"`VLLM_TARGET_DEVICE=empty pip install --no-binary vllm 'vllm{SUPPORTED_VLLM}'`",
    ),
    "torch-npu": (
        SpecifierSet(">=2.10"),
        "the driver of NPUs for torch, of the same minor version as torch",
        "`pip install 'vllm-ascend[npu]'`",
    ),
}
"""What we need but do not require, because its published metadata or its build depends on the machine: versions,
why, and how to install it."""

BOUNDS: dict[str, tuple[SpecifierSet, str]] = {
    "triton-ascend": (SpecifierSet(">=3.2,<3.3"), "the kernels are written for triton-ascend 3.2"),
    "numpy": (SpecifierSet("<2.4"), "the interpreter of triton-ascend 3.2 raises with numpy 2.4"),
}
"""Versions of what may be absent."""


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def versions() -> list[Finding]:
    """One finding per distribution of the stack."""
    findings = []
    for name in OURS[1:]:
        found = _version(name)
        if found is not None:
            findings.append(Finding(name, Status.OK, found))
        elif name in OPTIONAL:
            findings.append(Finding(name, Status.NOTE, "not installed", "optional"))
        else:
            findings.append(
                Finding(name, Status.PROBLEM, "not installed", "vllm-ascend needs it", f"`pip install {name}`")
            )
    for name, (allowed, why, mend) in PEERS.items():
        found = _version(name)
        if found is None:
            findings.append(Finding(name, Status.PROBLEM, "not installed", why, mend))
        elif not allowed.contains(found, prereleases=True):
            findings.append(Finding(name, Status.PROBLEM, f"{found}; allowed: {allowed}", why, mend))
        else:
            findings.append(Finding(name, Status.OK, found))
    for name, (allowed, why) in BOUNDS.items():
        found = _version(name)
        if found is not None and not allowed.contains(found, prereleases=True):
            mend = f"`pip install '{name}{allowed}'`"
            findings.append(Finding(name, Status.PROBLEM, f"{found}; allowed: {allowed}", why, mend))
        elif found is not None:
            findings.append(Finding(name, Status.OK, found))
    return findings


def requirements() -> list[Finding]:
    """What the stack's distributions require of each other, by their own metadata."""
    findings = []
    for name in (*OURS, "torch-npu", "triton-ascend"):
        if _version(name) is None:
            continue
        for text in requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            found = _version(requirement.name)
            if found is not None and requirement.specifier.contains(found, prereleases=True):
                continue
            asked = f"{name} {distribution(name).version} requires {requirement.name}{requirement.specifier}"
            findings.append(
                Finding(
                    f"{name} requires",
                    Status.PROBLEM,
                    f"{asked}; installed: {found or 'nothing'}",
                    "these versions do not belong together",
                    f"`pip install '{requirement.name}{requirement.specifier}'`, or another release of {name}",
                )
            )
    if not findings:
        findings.append(Finding("requirements", Status.OK, "versions of the stack belong together"))
    return findings
