"""The binding to vLLM: what the entry point in the group ``vllm_ascend.quantization`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm_ascend.api import RegistrationContext


def register(context: RegistrationContext) -> None:
    """Require version 1.0 of the platform's contract, and claim nothing: this release provides nothing to claim.

    Raises:
        ApiVersionError: the platform implements another contract.
    """
    context.require_api(1, 0)
