"""The section ``moe`` of ``--additional-config``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, field_validator

if TYPE_CHECKING:
    from vllm.config import VllmConfig

SECTION = "moe"


class BalancingConfig(BaseModel):
    """How ``--enable-eplb`` balances; how often, and over how many steps it counts, is vLLM's ``--eplb-config``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: str = Field(default="default", description="A name of the entry-point group ascend_moe.eplb_policies.")
    options: dict[str, Any] = Field(default={}, description="Options of the policy.")
    timeout: PositiveFloat = Field(default=300.0, description="Seconds until a plan that does not come is given up.")
    map_file: Path | None = Field(default=None, description="The placement to begin with, a JSON file.")
    record_file: Path | None = Field(default=None, description="Where to write every new placement of the model.")

    @field_validator("policy")
    @classmethod
    def _known(cls, name: str) -> str:
        from ascend_moe.eplb.planning import policy_names

        if name not in policy_names():
            raise ValueError(f"no policy is called {name!r}; there are {', '.join(policy_names()) or 'none'}")
        return name


class MoEConfig(BaseModel):
    """What a user can choose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exchange: Literal["auto", "all_gather", "all_to_all", "fused_dispatch"] = Field(
        default="auto",
        description="How tokens reach the experts of other ranks with expert parallelism: chosen for every step, or as "
        "named here wherever the step allows it.",
    )
    even_load: bool = Field(
        default=False,
        description="Send tokens to all experts evenly, whatever the router says, to measure speed. Answers are wrong.",
    )
    eplb: BalancingConfig = BalancingConfig()

    @classmethod
    def of(cls, vllm_config: VllmConfig) -> Self:
        """The section of an engine; the platform has validated it before a model loads."""
        return cls.model_validate(vllm_config.additional_config.get(SECTION, {}))
