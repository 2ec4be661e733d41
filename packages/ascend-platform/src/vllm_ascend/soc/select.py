"""Which SoC family a process runs on.

Outside the worker no NPU context may be made, so the family is the configured one (``soc_profile`` of
``--additional-config``, else ``VLLM_ASCEND_SOC``, else A2). A worker asks torch_npu and compares.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache

import torch

from vllm_ascend.api import SocProfile
from vllm_ascend.soc.profiles import BUILT_IN, DEFAULT_PROFILE

SOC_VARIABLE = "VLLM_ASCEND_SOC"
_BY_COMPONENT = {"310P": "ascend-310p"}


class SocError(RuntimeError):
    """The SoC family is unknown, not installed, or not the one that was configured."""


def _known(profiles: Mapping[str, SocProfile]) -> str:
    return ", ".join(sorted(profiles))


def configured_profile(profiles: Mapping[str, SocProfile] = BUILT_IN, key: str | None = None) -> SocProfile:
    """The family by configuration.

    Args:
        profiles: the known families, built-in and provided by components.
        key: the value of ``soc_profile``, or None.

    Raises:
        SocError: no such family; names the distribution that provides it if one does.
    """
    source, name = ("soc_profile", key) if key is not None else (SOC_VARIABLE, os.environ.get(SOC_VARIABLE))
    if not name:
        return profiles[DEFAULT_PROFILE]
    by_upper = {it.upper(): profile for it, profile in profiles.items()}
    if (profile := by_upper.get(name.upper())) is not None:
        return profile
    if (distribution := _BY_COMPONENT.get(name.upper())) is not None:
        raise SocError(
            f"{source}={name!r} needs the profile that the distribution {distribution} provides, and no installed "
            f"component provides it; `pip install 'vllm-ascend[{distribution.removeprefix('ascend-')}]'`. "
            f"Known here: {_known(profiles)}"
        )
    raise SocError(f"{source}={name!r} is no known SoC family; allowed: {_known(profiles)}")


def identify(chip_name: str, soc_version: int, profiles: Iterable[SocProfile]) -> SocProfile:
    """The family of a chip by its name, or by torch_npu's number for names that came out later.

    Raises:
        SocError: neither is known, or they belong to different families.
    """
    profiles = tuple(profiles)
    by_name = [it for it in profiles if it.matches_name(chip_name)]
    by_version = [it for it in profiles if it.matches_version(soc_version)]
    found = by_name or by_version
    if not found:
        raise SocError(
            f"unknown chip {chip_name!r} (torch_npu SoC number {soc_version}); known families: "
            f"{', '.join(sorted(it.name for it in profiles))}. A component can provide a profile in the entry-point "
            "group vllm_ascend.soc; ascend-310p provides 310P"
        )
    if by_name and by_version and by_name != by_version:
        raise SocError(
            f"the chip name {chip_name!r} is of the family {by_name[0].name}, its SoC number {soc_version} of "
            f"{by_version[0].name}; torch_npu and the driver do not fit together"
        )
    return found[0]


@lru_cache(maxsize=1)
def _chip() -> tuple[str, int]:
    return torch.npu.get_device_name(), torch.npu.get_soc_version()


def detect(profiles: Iterable[SocProfile]) -> SocProfile:
    """The family of the current device. Makes an NPU context: for workers only.

    Raises:
        SocError: as :func:`identify`.
    """
    return identify(*_chip(), profiles)


def active_profile(profiles: Mapping[str, SocProfile] = BUILT_IN, key: str | None = None) -> SocProfile:
    """The detected family where this process has an NPU context, else the configured one.

    Raises:
        SocError: the detected family is not the one that was configured, or differs from the assumed one in what the
            engine was configured with before a device could be asked.
    """
    configured = configured_profile(profiles, key)
    if not torch.npu.is_initialized():
        return configured
    found = detect(profiles.values())
    if found.name == configured.name:
        return found
    explicit = key is not None or bool(os.environ.get(SOC_VARIABLE))
    shared = ("dtypes", "kernel_block_sizes", "graph_modes")
    differing = [it for it in shared if getattr(found, it) != getattr(configured, it)]
    if explicit or differing:
        raise SocError(
            f"this device is a {found.name} ({_chip()[0]!r}), but the engine was configured for {configured.name}; "
            f'set {SOC_VARIABLE}={found.name} or "soc_profile": "{found.name}" in --additional-config'
        )
    return found
