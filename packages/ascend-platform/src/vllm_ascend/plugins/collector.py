"""The registration context that one component gets: it only collects claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from vllm_ascend.api import API_VERSION, ApiVersionError, Claim, ClaimError, ClaimKind, SocProfile
from vllm_ascend.plugins.groups import SOC

if TYPE_CHECKING:
    from vllm.config import VllmConfig

Section = TypeVar("Section", bound=BaseModel)


class SectionHandle(Generic[Section]):
    """See :class:`vllm_ascend.api.ConfigSection`."""

    def __init__(self, key: str, model: type[Section]) -> None:
        self.key = key
        self.model = model

    def of(self, vllm_config: VllmConfig) -> Section:
        """The validated section of this engine."""
        from vllm_ascend.config import AscendConfig

        return AscendConfig.of(vllm_config).section(self.key, self.model)


class Collector:
    """See :class:`vllm_ascend.api.RegistrationContext`, which it satisfies."""

    def __init__(self, group: str, component: str, distribution: str, soc: SocProfile) -> None:
        self._group = group
        self.component = component
        self.distribution = distribution
        self._soc = soc
        self.claims: list[Claim] = []
        self.profiles: dict[str, SocProfile] = {}
        self.section: type[BaseModel] | None = None

    @property
    def api_version(self) -> tuple[int, int]:
        """(major, minor) of the contract."""
        return API_VERSION

    @property
    def soc(self) -> SocProfile:
        """The SoC family."""
        return self._soc

    def require_api(self, major: int, minor: int = 0) -> None:
        """Refuse a platform of another major version or a lower minor one."""
        if major != API_VERSION[0] or minor > API_VERSION[1]:
            ours = ".".join(map(str, API_VERSION))
            raise ApiVersionError(
                f"needs vllm_ascend.api {major}.{minor}, this vllm-ascend has {ours}; "
                f"install a {self.distribution} and a vllm-ascend that belong together"
            )

    def config_section(self, model: type[Section]) -> SectionHandle[Section]:
        """Declare the model of the component's section."""
        if self.section is not None and self.section is not model:
            raise ClaimError(
                f"the component {self.component!r} declares {model.__qualname__} as its section of "
                f"--additional-config, after {self.section.__qualname__}; a component has one section"
            )
        self.section = model
        return SectionHandle(self.component, model)

    def claim_layer(self, name: str, path: str) -> None:
        """Claim vLLM's out-of-tree slot of a layer class."""
        self._claim(ClaimKind.LAYER, name, path)

    def claim_quant_method(self, name: str, path: str) -> None:
        """Claim a quantisation method."""
        self._claim(ClaimKind.QUANT_METHOD, name, path)

    def claim_proposer(self, method: str, path: str) -> None:
        """Claim a speculative method."""
        self._claim(ClaimKind.PROPOSER, method, path)

    def claim_op_provider(self, name: str, module: str) -> None:
        """Claim a provider of ``vllm.ir`` ops."""
        self._claim(ClaimKind.OP_PROVIDER, name, module)

    def claim_expert_balancer(self, path: str) -> None:
        """Claim the balancer of experts."""
        self._claim(ClaimKind.EXPERT_BALANCER, "eplb", path)

    def claim_soc(self, **fields: Any) -> None:
        """Claim a SoC family."""
        if self._group != SOC.name:
            raise ClaimError(f"a SoC profile can be claimed in the group {SOC.name} only, not in {self._group}")
        try:
            profile = SocProfile(**fields)
        except TypeError as error:
            raise ClaimError(f"the SoC profile is not complete: {error}") from error
        self._claim(ClaimKind.SOC, profile.name, "vllm_ascend.api:SocProfile")
        self.profiles[profile.name] = profile

    def _claim(self, kind: ClaimKind, name: str, path: str) -> None:
        claim = Claim(kind, name, path, self.component, self.distribution)
        if claim in self.claims:
            return
        if any((it.kind, it.name) == (kind, name) for it in self.claims):
            raise ClaimError(f"the component {self.component!r} claims the {kind} {name!r} twice, with two paths")
        self.claims.append(claim)
