"""``AscendConfig``: what ``--additional-config`` says, validated before a model loads."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from vllm_ascend.config.errors import ConfigError, explain, unknown_key
from vllm_ascend.config.per_object import PerObject

if TYPE_CHECKING:
    from vllm.config import VllmConfig

    from vllm_ascend.plugins import Registry

Section = TypeVar("Section", bound=BaseModel)
WHERE = "--additional-config"


class AscendConfig(BaseModel):
    """Our own keys of ``--additional-config``. The sections of components are reached through :meth:`section`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    soc_profile: str | None = Field(default=None, description="SoC family; beats `VLLM_ASCEND_SOC`. Unset: A2.")
    allow_float32: bool = Field(
        default=False,
        description="Accept a float32 model. The vendor's fused attention takes no float32, so this is for devices "
        "and tests whose attention does.",
    )

    WRITTEN_BY_VLLM: ClassVar[frozenset[str]] = frozenset({"gdn_prefill_backend"})
    """Keys that vLLM 0.23 itself puts into the dictionary from options of its own."""

    _sections: Mapping[str, BaseModel] = PrivateAttr(default_factory=lambda: MappingProxyType({}))
    _per_config: ClassVar[PerObject[AscendConfig]] = PerObject()

    @classmethod
    def of(cls, vllm_config: VllmConfig) -> AscendConfig:
        """The configuration of an engine, parsed once per config object.

        Raises:
            ConfigError: a key is unknown, a value has the wrong type, or a section's component is not installed.
        """
        known = cls._per_config.get(vllm_config)
        if known is not None:
            return known
        given = vllm_config.additional_config
        if not isinstance(given, dict):
            raise ConfigError(f"{WHERE} must be a JSON object, but it is {given!r} of type {type(given).__name__}")
        return cls._per_config.put(vllm_config, cls.parse(given))

    @classmethod
    def parse(cls, given: Mapping[str, Any], components: Registry | None = None) -> AscendConfig:
        """Validate a dictionary: our own keys here, each component's section by the component's model.

        Args:
            given: the dictionary as the user wrote it.
            components: what is installed; None reads it.

        Raises:
            ConfigError: as :meth:`of`.
        """
        from vllm_ascend.plugins import GROUPS, registry

        own = {key: value for key, value in given.items() if key not in cls.WRITTEN_BY_VLLM}
        components = components or registry()
        by_key = {it.name.rpartition(".")[2]: it for it in GROUPS}
        installed = {it.name for it in components.components}
        known = sorted({*cls.model_fields, *components.sections})
        sections: dict[str, BaseModel] = {}
        for key in [it for it in own if it not in cls.model_fields]:
            value = own[key]
            if (model := components.sections.get(key)) is not None:
                sections[key] = _validate(model, value, f"{WHERE}, section {key!r}")
            elif (problem := next((it for it in components.problems if it.component == key), None)) is not None:
                raise ConfigError(f"{WHERE}: the section {key!r} cannot be read: {problem}")
            elif key in installed:
                raise ConfigError(f"{WHERE}: the installed component {key!r} takes no configuration; leave {key!r} out")
            elif (group := by_key.get(key)) is not None:
                raise ConfigError(f"{WHERE}: {components.missing(group, f'the section {key!r}')}")
            else:
                raise ConfigError(unknown_key(key, known, WHERE))
            del own[key]
        try:
            config = cls(**own)
        except ValidationError as error:
            raise ConfigError(explain(error, known, WHERE)) from error
        for key, model in components.sections.items():
            if key not in sections:
                sections[key] = _validate(model, {}, f"{WHERE}, section {key!r}")
        config._sections = MappingProxyType(sections)
        return config

    def section(self, key: str, model: type[Section]) -> Section:
        """The validated section of a component.

        Raises:
            ConfigError: no installed component has this section, or it has another model.
        """
        found = self._sections.get(key)
        if not isinstance(found, model):
            raise ConfigError(f"{WHERE} has no section {key!r} of the type {model.__qualname__}; it has {found!r}")
        return found


def _validate(model: type[BaseModel], value: Any, where: str) -> BaseModel:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a JSON object, but it is {value!r} of type {type(value).__name__}")
    try:
        return model(**value)
    except ValidationError as error:
        raise ConfigError(explain(error, model.model_fields, where)) from error
