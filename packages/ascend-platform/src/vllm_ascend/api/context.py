"""What the platform hands to a component's ``register`` function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from vllm.config import VllmConfig

    from vllm_ascend.api.soc import SocProfile

API_VERSION: Final = (1, 1)
"""Major and minor version of this contract. A minor version only adds."""

Section = TypeVar("Section", bound=BaseModel)
SectionOut = TypeVar("SectionOut", bound=BaseModel, covariant=True)


class ConfigSection(Protocol[SectionOut]):
    """A handle on the component's own section of ``--additional-config``.

    A component registers before any engine configuration exists, so it gets a handle and not the values.
    """

    def of(self, vllm_config: VllmConfig) -> SectionOut:
        """The validated, immutable section of this engine; the model's defaults where the user gave none."""
        ...


class RegistrationContext(Protocol):
    """What a component sees of the platform while it registers. Nothing here touches a device."""

    @property
    def api_version(self) -> tuple[int, int]:
        """(major, minor) of the contract that the platform implements."""
        ...

    @property
    def soc(self) -> SocProfile:
        """The SoC family: the detected one in a worker, the configured or default one elsewhere."""
        ...

    def require_api(self, major: int, minor: int = 0) -> None:
        """Refuse a platform that the component was not written for.

        Raises:
            ApiVersionError: the major version differs, or the minor one is lower.
        """
        ...

    def config_section(self, model: type[Section]) -> ConfigSection[Section]:
        """Declare the model of the component's section, whose key is the entry point's name.

        The model should be frozen and forbid extra keys. The platform validates the section before a model loads.

        Raises:
            ClaimError: the component declared another model already.
        """
        ...

    def claim_layer(self, name: str, path: str) -> None:
        """Take vLLM's out-of-tree slot of the ``CustomOp`` or ``PluggableLayer`` class ``name``.

        Raises:
            ClaimError: the name is empty or the path is not ``"package.module:Class"``.
        """
        ...

    def claim_quant_method(self, name: str, path: str) -> None:
        """Provide the ``QuantizationConfig`` of the method ``name``. Raises as :meth:`claim_layer`."""
        ...

    def claim_proposer(self, method: str, path: str) -> None:
        """Provide the proposer of a speculative ``method``. Raises as :meth:`claim_layer`."""
        ...

    def claim_op_provider(self, name: str, module: str) -> None:
        """Provide implementations of ``vllm.ir`` ops: importing ``module`` registers them under ``name``.

        Raises:
            ClaimError: the name is empty or the path is not a module path.
        """
        ...

    def claim_expert_balancer(self, path: str) -> None:
        """Provide the :class:`~vllm_ascend.api.ExpertBalancer` class of ``--enable-eplb``. Raises as
        :meth:`claim_layer`. Since 1.1.
        """
        ...

    def claim_soc(self, **fields: Any) -> None:
        """Provide the profile of a SoC family; ``fields`` are those of :class:`SocProfile`.

        Raises:
            ClaimError: a field is unknown or missing, or the component is not in the group ``vllm_ascend.soc``.
        """
        ...


class Register(Protocol):
    """The value of an entry point: idempotent, imports no device code, only claims."""

    def __call__(self, context: RegistrationContext) -> None:
        """Make the component's claims."""
        ...
