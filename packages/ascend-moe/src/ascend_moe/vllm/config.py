"""The section ``moe`` of ``--additional-config``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from vllm.config import VllmConfig

SECTION = "moe"


class MoEConfig(BaseModel):
    """What a user can choose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exchange: Literal["all_gather", "all_to_all"] = Field(
        default="all_gather",
        description="How tokens reach the experts of other data parallel ranks with expert parallelism. Steps that are "
        "captured as graphs use all_gather in any case.",
    )

    @classmethod
    def of(cls, vllm_config: VllmConfig) -> Self:
        """The section of an engine; the platform has validated it before a model loads."""
        return cls.model_validate(vllm_config.additional_config.get(SECTION, {}))
