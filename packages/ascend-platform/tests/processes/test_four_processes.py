"""One engine, all of vLLM's process kinds: API process, engine core, worker, model inspection.

A component of the test is registered in each of them and writes down what it sees, among others when its process gets
an NPU context. The engine runs twice, with vLLM's `HAS_TRITON` forced to either value.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROMPTS = [[3, 1, 4, 1, 5, 9, 2, 6], [5, 35, 8, 97, 93]]
NEW_TOKENS = 8

# Looked at every 20 ms, because a process of vLLM may end without running exit handlers.
WITNESS = """
import json, multiprocessing, os, sys, threading, time
import torch

def _write(event):
    line = {"event": event, "pid": os.getpid(), "parent": os.getppid(), "triton": None}
    line["process"] = multiprocessing.current_process().name
    line["command"] = " ".join(sys.orig_argv)
    triton = sys.modules.get("vllm.triton_utils.importing")
    line["triton"] = getattr(triton, "HAS_TRITON", None)
    with open(os.environ["WITNESS_LOG"], "a") as log:
        log.write(json.dumps(line) + "\\n")

def _watch():
    while not torch.npu.is_initialized():
        time.sleep(0.02)
    _write("context")

def register(context):
    _write("register")
    if not any(it.name == "witness" for it in threading.enumerate()):
        threading.Thread(target=_watch, name="witness", daemon=True).start()
"""

ENGINE = """
import json, os, sys

if __name__ == "__main__":
    model, prompts, new_tokens = json.loads(sys.argv[1])
    from vllm import LLM, SamplingParams
    import torch

    llm = LLM(
        model=model,
        dtype="float32",
        additional_config={"allow_float32": True},
        skip_tokenizer_init=True,
        distributed_executor_backend="mp",
        max_model_len=64,
        max_num_seqs=2,
        kv_cache_memory_bytes=16 << 20,
        seed=0,
    )
    sampling = SamplingParams(temperature=0, max_tokens=new_tokens, ignore_eos=True, detokenize=False)
    outputs = llm.generate([{"prompt_token_ids": it} for it in prompts], sampling, use_tqdm=False)
    answer = {"tokens": [list(it.outputs[0].token_ids) for it in outputs], "pid": os.getpid()}
    answer["context"] = torch.npu.is_initialized()
    print("ANSWER " + json.dumps(answer), flush=True)
"""

# vLLM asks Triton's drivers whether exactly one is active; with an empty CUDA_VISIBLE_DEVICES it is content with none.
FORCED = {True: {"CUDA_VISIBLE_DEVICES": ""}, False: {"CUDA_VISIBLE_DEVICES": "0"}}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    folder = tmp_path_factory.mktemp("models") / "llama"
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def expected(model: Path) -> list[list[int]]:
    """Greedy continuations by transformers."""
    import torch
    from transformers import LlamaForCausalLM

    reference = LlamaForCausalLM.from_pretrained(model, dtype=torch.float32)
    continuations = []
    for prompt in PROMPTS:
        tokens = list(prompt)
        for _ in range(NEW_TOKENS):
            tokens.append(int(reference(torch.tensor([tokens])).logits[0, -1].argmax()))
        continuations.append(tokens[len(prompt) :])
    return continuations


@dataclass
class Run:
    """What an engine answered and what the witness saw."""

    answer: dict[str, Any]
    events: list[dict[str, Any]]


@pytest.fixture
def run_engine(installer: Any, model: Path, tmp_path: Path) -> Callable[..., Run]:
    """Start the engine in a process of its own with the witness installed."""
    installer.add("witness-part", {"vllm_ascend.moe": {"witness": "witness_part:register"}}, {"witness_part": WITNESS})
    script = tmp_path / "engine.py"
    script.write_text(ENGINE)

    def run(**environment: str) -> Run:
        log = tmp_path / "witness.log"
        variables = {
            **os.environ,
            "WITNESS_LOG": str(log),
            "ASCEND_SIM_ORACLE_FP32": "1",
            "VLLM_CACHE_ROOT": str(tmp_path / "cache"),  # an empty one makes vLLM inspect the model's class
            **environment,
        }
        arguments = json.dumps([str(model), PROMPTS, NEW_TOKENS])
        command = [sys.executable, str(script), arguments]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, check=False)
        answers = [it.removeprefix("ANSWER ") for it in done.stdout.splitlines() if it.startswith("ANSWER ")]
        assert answers, done.stdout[-3000:] + done.stderr[-6000:]
        return Run(json.loads(answers[-1]), [json.loads(it) for it in log.read_text().splitlines()])

    return run


def kind_of(event: dict[str, Any], api_pid: int) -> str:
    """The process kind of an event."""
    if event["pid"] == api_pid:
        return "api"
    if event["process"].startswith("EngineCore"):
        return "engine core"
    if "Worker" in event["process"]:
        return "worker"
    return "inspection" if "vllm.model_executor.models.registry" in event["command"] else event["process"]


@pytest.mark.timeout(620)  # a bound: an engine starts five processes, each of which imports vLLM
@pytest.mark.parametrize("has_triton", [True, False], ids=["with-triton", "without-triton"])
def test_every_kind_registers_and_the_worker_alone_has_a_context(
    run_engine: Callable[..., Run], expected: list[list[int]], has_triton: bool
) -> None:
    run = run_engine(**FORCED[has_triton], VLLM_PLUGINS="ascend")
    kinds: dict[str, set[str]] = {"register": set(), "context": set()}
    for event in run.events:
        kinds[event["event"]].add(kind_of(event, run.answer["pid"]))
    assert kinds["register"] == {"api", "engine core", "worker", "inspection"}
    assert kinds["context"] == {"worker"}
    assert run.answer["context"] is False
    seen = {it["triton"] for it in run.events if it["triton"] is not None}
    assert seen == {has_triton}
    assert run.answer["tokens"] == expected
