"""Tokens per second of SmolLM2 in bfloat16 on the simulated NPU, beside transformers' `generate` on the same CPU.

Both run in this process with the same threads and take turns, so that whatever else the machine does hits both alike.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

# Before vLLM is imported: the engine runs in this process, beside transformers.
os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="WARNING")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoModelForCausalLM, AutoTokenizer
from vllm import LLM

from ascend_integration.checkpoints import smollm2_checkpoint
from ascend_integration.engine.in_process import greedy_tokens, in_process_engine

QUESTIONS = [
    "What is the capital of France?",
    "Name three primary colors.",
    "Write one sentence about the sea.",
    "How many days are in a week?",
    "What is 2+2?",
    "Why is the sky blue?",
    "Give me a short poem about winter.",
    "What do bees make?",
]
SETTINGS: dict[str, dict[str, Any]] = {
    "graphs": {},
    "eager, async scheduling": {"enforce_eager": True, "async_scheduling": True},
    "eager, no async scheduling": {"enforce_eager": True, "async_scheduling": False},
}


@dataclass(frozen=True)
class Rates:
    """Tokens per second of each round."""

    ours: list[float]
    transformers: list[float]

    @property
    def ratio(self) -> float:
        """Median of the ratios of the rounds: a round's two runs met the same load."""
        return statistics.median(a / b for a, b in zip(self.ours, self.transformers, strict=True))


def transformers_generate(model: Any, tokenizer: Any, prompts: list[list[int]], tokens: int) -> None:
    """One batch, padded on the left, greedy, exactly `tokens` tokens each."""
    batch = tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
    output = model.generate(
        **batch, do_sample=False, max_new_tokens=tokens, min_new_tokens=tokens, pad_token_id=tokenizer.pad_token_id
    )
    if output.shape[1] - batch["input_ids"].shape[1] != tokens:
        raise RuntimeError(f"transformers generated {output.shape[1]} positions instead of {tokens} new ones")


def our_generate(llm: LLM, prompts: list[list[int]], tokens: int) -> None:
    """The same batch through vLLM."""
    lengths = [len(sequence) for sequence in greedy_tokens(llm, prompts, tokens)]
    if lengths != [tokens] * len(prompts):
        raise RuntimeError(f"vLLM generated {lengths} tokens instead of {tokens} each")


def measure(ours: Callable[[], None], theirs: Callable[[], None], tokens: int, rounds: int) -> Rates:
    """Alternate the two after one warm-up of each."""
    ours()
    theirs()
    rates = Rates([], [])
    for _ in range(rounds):
        for run, into in ((ours, rates.ours), (theirs, rates.transformers)):
            start = time.perf_counter()
            run()
            into.append(tokens / (time.perf_counter() - start))
    return rates


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Alternating rounds per setting.")] = 5,
    tokens: Annotated[int, typer.Option(min=2, help="New tokens per prompt.")] = 64,
    only: Annotated[str | None, typer.Option(help=f"One setting: {', '.join(SETTINGS)}.")] = None,
) -> None:
    """Print the medians and the ratio to transformers for graphs, and for eager with and without async scheduling."""
    if only is not None and only not in SETTINGS:
        raise typer.BadParameter(f"{only!r} is not a setting; the settings are {', '.join(SETTINGS)}")
    folder = str(smollm2_checkpoint())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chats = [[{"role": "user", "content": question}] for question in QUESTIONS]
    prompts = [tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"] for chat in chats]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()

    title = f"SmolLM2-135M bfloat16, {len(prompts)} prompts x {tokens} tokens, {torch.get_num_threads()} threads"
    table = Table("setting", "ours tok/s", "transformers tok/s", "ratio", title=title)
    for name, settings in SETTINGS.items():
        if only not in (None, name):
            continue
        with in_process_engine(folder, dtype="bfloat16", enable_prefix_caching=False, **settings) as llm:
            rates = measure(
                lambda: our_generate(llm, prompts, tokens),
                lambda: transformers_generate(model, tokenizer, prompts, tokens),
                len(prompts) * tokens,
                rounds,
            )
        table.add_row(name, _median(rates.ours), _median(rates.transformers), f"{rates.ratio:.2f}")
    Console(width=120).print(table)


def _median(rates: list[float]) -> str:
    return f"{statistics.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f})"


if __name__ == "__main__":
    typer.run(main)
