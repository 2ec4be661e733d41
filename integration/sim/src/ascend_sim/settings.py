"""Settings of the simulation: environment variables `ASCEND_SIM_*`, validated when torch_npu is imported."""

import difflib
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

PREFIX = "ASCEND_SIM_"
MAX_DEVICES = 64

# SoC names torch_npu 2.13 knows. The families 950 are given by pattern: they have dozens of members.
SOC_NAMES = (
    *(f"Ascend310P{number}" for number in (1, 2, 3, 4, 5, 7)),
    *(f"Ascend910{letter}" for letter in ("A", "B", "ProA", "ProB", "PremiumA")),
    *(f"Ascend910B{number}" for number in ("1", "2", "2C", "3", "4", "4-1")),
    *(f"Ascend910_{number}" for number in (9362, 9363, 9372, 9381, 9382, 9391, 9392)),
)
SOC_PATTERN = re.compile(r"Ascend950(DT|PR)_95[0-9a-zA-Z]{2,3}")

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?", re.IGNORECASE)
_UNITS = {"b": 0, "kib": 10, "mib": 20, "gib": 30, "tib": 40}


class SettingsError(ValueError):
    """A variable has a value the simulation cannot use; the message names variable, value and what is allowed."""


def parse_size(value: Any) -> int:
    """Bytes of a size such as "8GiB", "512 MiB" or "1073741824"."""
    match = _SIZE.fullmatch(str(value).strip())
    if not match:
        raise ValueError('a size such as "8GiB", "512MiB" or a number of bytes')
    return int(float(match[1]) * 2 ** _UNITS[(match[2] or "B").lower()])


def parse_names(value: Any) -> tuple[str, ...]:
    """Names of a comma-separated list."""
    return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else tuple(value)


class Settings(BaseSettings):
    """What the simulated machine is like."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    soc: str = Field("Ascend910B1", description="SoC name that torch_npu sees")
    devices: int = Field(2, ge=1, le=MAX_DEVICES, description="number of NPUs")
    memory: Annotated[int, BeforeValidator(parse_size), Field(ge=64 << 20, le=1 << 50)] = Field(
        8 << 30, description="memory of each NPU"
    )
    oracle_fp32: bool = Field(
        False, description="let the fused attention operators take fp32, for comparison with an oracle"
    )
    adopt: Annotated[tuple[str, ...], NoDecode, BeforeValidator(parse_names)] = Field(
        ("ascend_kernels",),
        description="namespaces whose custom operators run by their CPU kernels as one device operator",
    )
    event_timeout: float = Field(
        5.0, ge=0, le=86400, description="seconds after which a wait for an event nobody records is an error"
    )
    order: Literal["off", "check", "random"] = Field(
        "off", description="check: uses of memory that no stream order separates are errors; random: any legal order"
    )
    seed: int = Field(0, ge=0, lt=2**63, description="what chooses the order that ASCEND_SIM_ORDER=random runs work in")
    trace: bool = Field(False, description="write runtime errors and unimplemented CANN calls to stderr")

    chrome_trace: str = Field("", description="file for a Chrome trace; every process adds its number to the name")

    @field_validator("soc")
    @classmethod
    def _known_soc(cls, value: str) -> str:
        if value not in SOC_NAMES and not SOC_PATTERN.fullmatch(value):
            near = difflib.get_close_matches(value, SOC_NAMES, n=1, cutoff=0)
            raise ValueError(f"one of {', '.join(SOC_NAMES)} or Ascend950DT_95xx/Ascend950PR_95xx (nearest: {near[0]})")
        return value

    @field_validator("chrome_trace")
    @classmethod
    def _writable(cls, value: str) -> str:
        folder = Path(value).absolute().parent
        if value and not os.access(folder, os.W_OK):
            raise ValueError(f"a file in a folder that exists and may be written; {folder} is none")
        return value

    @field_validator("adopt")
    @classmethod
    def _namespaces(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name.isidentifier() or name in ("aten", "npu", "atb", "c10d", "prim"):
                raise ValueError("namespaces of custom operators, comma-separated")
        return value

    @property
    def visible_devices(self) -> int:
        """Number of NPUs this process may use: all, or those `ASCEND_RT_VISIBLE_DEVICES` lists."""
        listed = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
        if listed is None or not listed.strip():
            return self.devices
        indices = [item.strip() for item in listed.split(",")]
        if not all(item.isdigit() and int(item) < self.devices for item in indices) or len(set(indices)) != len(
            indices
        ):
            raise SettingsError(
                f"ASCEND_RT_VISIBLE_DEVICES={listed!r}: expected different device numbers below "
                f"ASCEND_SIM_DEVICES={self.devices}, comma-separated"
            )
        return len(indices)


# Read by other parts: ASCEND_SIM itself and where builds are.
OTHER_VARIABLES = ("ASCEND_SIM", "ASCEND_SIM_CACHE_DIR")


def load_settings() -> Settings:
    """Settings from the environment.

    Raises:
        SettingsError: a value is not allowed, or a variable that starts with ASCEND_SIM_ is not known.
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields} | set(OTHER_VARIABLES)
    for variable in os.environ:
        if variable.startswith(PREFIX) and variable not in known:
            near = difflib.get_close_matches(variable, sorted(known), n=1, cutoff=0)
            raise SettingsError(f"{variable} is not a setting of ascend-sim; did you mean {near[0]}?")
    if os.environ.get("ASCEND_SIM", "1") not in ("0", "1"):
        raise SettingsError(f"ASCEND_SIM={os.environ['ASCEND_SIM']!r}: expected 0 (off) or 1 (on, the default)")
    try:
        return Settings()
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            variable = PREFIX + str(problem["loc"][0]).upper()
            allowed = problem["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
            lines.append(f"{variable}={os.environ.get(variable, '')!r}: expected {allowed}")
        raise SettingsError("; ".join(lines)) from error
