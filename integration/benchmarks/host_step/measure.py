"""Measures one engine in this process and prints a JSON object: host time and device operators per decode step.

Runs under any interpreter whose vLLM has an Ascend platform on a simulated NPU, so that two of them can be compared; it
imports nothing of this repository but the simulation's instruments.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PROMPT_TOKENS = 16
WARM_STEPS = 6


class Instruments:
    """Counters and free compute of the simulation, or of the prototype's, which has other names for them."""

    def __init__(self) -> None:
        import torch

        self.ops = torch.ops.ascend_sim
        try:
            from ascend_sim import instruments
        except ImportError:
            self.current = None
        else:
            self.current = instruments

    def totals(self) -> tuple[int, int, int]:
        """Operators outside graphs, graph replays, tasks run by replays."""
        if self.current is not None:
            counters = self.current.counters()
            return counters["ops"], counters["replays"], counters["graph_tasks"]
        ops, replays, tasks, *_ = self.ops.more()
        return ops, replays, tasks

    @contextmanager
    def free_compute(self) -> Iterator[None]:
        """Operators give outputs of the right shape without computing them."""
        if self.current is not None:
            with self.current.free_compute():
                yield
            return
        self.ops.set_mode(True, False)
        try:
            yield
        finally:
            self.ops.set_mode(False, False)

    def names(self, run: Any) -> dict[str, int]:
        """How often ``run()`` launches each operator; names inside graphs start with ``graph:``."""
        if self.current is not None:
            with self.current.counting() as counts:
                run()
            return dict(counts)
        self.ops.set_mode(True, True)
        run()
        self.ops.set_mode(True, False)
        return {name: int(count) for name, count in (entry.rsplit("=", 1) for entry in self.ops.counts())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--batches", default="1,8,64")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engine", default="{}", help="further arguments of vllm.LLM, as JSON")
    arguments = parser.parse_args()
    batches = [int(batch) for batch in arguments.batches.split(",")]

    started = time.perf_counter()
    from vllm import LLM, SamplingParams

    engine: dict[str, Any] = {
        "model": arguments.model,
        "skip_tokenizer_init": True,
        "max_model_len": 512,
        "block_size": 128,
        "max_num_batched_tokens": 2048,
        "max_num_seqs": max(batches),
        "kv_cache_memory_bytes": 256 << 20,
        "enable_prefix_caching": False,
        "compilation_config": {"cudagraph_capture_sizes": batches},
    }
    llm = LLM(**{**engine, **json.loads(arguments.engine)})
    start_up = time.perf_counter() - started
    instruments = Instruments()
    config = llm.llm_engine.vllm_config
    layers = config.model_config.hf_config.num_hidden_layers
    draw = random.Random(0)

    def generate(batch: int, tokens: int) -> tuple[float, float]:
        prompts = [{"prompt_token_ids": [draw.randrange(3, 500) for _ in range(PROMPT_TOKENS)]} for _ in range(batch)]
        parameters = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        wall, cpu = time.perf_counter(), time.process_time()
        llm.generate(prompts, parameters, use_tqdm=False)
        return time.perf_counter() - wall, time.process_time() - cpu

    result: dict[str, Any] = {
        "start_up_s": start_up,
        "graph_mode": config.compilation_config.cudagraph_mode.name,
        "async_scheduling": bool(config.scheduler_config.async_scheduling),
        "batches": {},
    }
    steps = arguments.steps
    for batch in batches:
        generate(batch, WARM_STEPS)
        with instruments.free_compute():
            generate(batch, WARM_STEPS)
            first = instruments.totals()
            generate(batch, WARM_STEPS)
            second = instruments.totals()
            generate(batch, WARM_STEPS + steps)
            third = instruments.totals()
            # What the prefill and the start of a request cost cancels out of the difference of two lengths.
            ops, replays, tasks = (((c - b) - (b - a)) / steps for a, b, c in zip(first, second, third))
            wall_us, cpu_us = [], []
            for _ in range(arguments.repeats):
                long, short = generate(batch, WARM_STEPS + steps), generate(batch, WARM_STEPS)
                wall_us.append((long[0] - short[0]) / steps * 1e6)
                cpu_us.append((long[1] - short[1]) / steps * 1e6)
            short_names = instruments.names(lambda: generate(batch, WARM_STEPS))  # noqa: B023  called at once
            long_names = instruments.names(lambda: generate(batch, WARM_STEPS + 20))  # noqa: B023
        per_step = {
            name: (count - short_names.get(name, 0)) / 20
            for name, count in long_names.items()
            if count != short_names.get(name, 0)
        }
        result["batches"][batch] = {
            "wall_us": wall_us,
            "cpu_us": cpu_us,
            "ops_outside": ops,
            "replays": replays,
            "graph_tasks_per_layer": tasks / layers,
            "names": dict(sorted(per_step.items(), key=lambda entry: -entry[1])),
        }
    print(json.dumps(result), file=sys.stdout, flush=True)


if __name__ == "__main__":
    main()
