"""The vLLM release that is installed, and the ones that we support."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.specifiers import SpecifierSet

SUPPORTED_VLLM = SpecifierSet(">=0.23.0,<0.24")
"""vLLM releases of which this vllm-ascend knows the interfaces."""


class UnsupportedVllmError(RuntimeError):
    """vLLM is missing or of a release that this vllm-ascend was not written for."""


def installed_vllm_version() -> str:
    """The version of the distribution ``vllm``, for example ``"0.23.0"``; the module is not imported.

    Raises:
        UnsupportedVllmError: vLLM is not installed.
    """
    try:
        return version("vllm")
    except PackageNotFoundError as error:
        raise UnsupportedVllmError(
            "vLLM is not installed; install it for Ascend with "
            f"`VLLM_TARGET_DEVICE=empty pip install --no-binary vllm 'vllm{SUPPORTED_VLLM}'`"
        ) from error


def check_vllm() -> None:
    """Raise :class:`UnsupportedVllmError` unless the installed vLLM is supported."""
    found = installed_vllm_version()
    if not SUPPORTED_VLLM.contains(found, prereleases=True):
        raise UnsupportedVllmError(
            f"this vllm-ascend supports vLLM {SUPPORTED_VLLM}, but {found} is installed; "
            "install a vLLM of that range, or the vllm-ascend release of the same minor version"
        )
