"""What the tests of one served tiny model work with."""

from dataclasses import dataclass

from vllm import LLM

from ascend_integration.engine.grid import EngineSettings


@dataclass(frozen=True)
class Served:
    """An engine, the prompts, transformers' continuation of each, and the settings the engine was started with."""

    llm: LLM
    prompts: list[list[int]]
    expected: list[list[int]]
    settings: EngineSettings
