"""`python -m ascend_integration demo`: model, server, question, verdict."""

import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ascend_integration.checkpoints import CheckpointError, smollm2_checkpoint
from ascend_integration.checkpoints.smollm2 import MODEL_NAME
from ascend_integration.demo.chat import ChatError, stream_chat
from ascend_integration.demo.device import served_device
from ascend_integration.demo.interrupts import Interrupted, interrupts_raise
from ascend_integration.demo.server import ServerError, VllmServer
from ascend_integration.demo.verdict import problems

DEFAULT_QUESTION = "What is the capital of France?"
# With its default system message SmolLM2 is undecided about the first word: the best two logits are 0.1 apart, which is
# one step of bfloat16 at their size. With this one they are 0.5 apart or more at every token of the answer.
DEFAULT_SYSTEM = "Answer in one sentence."
EXPECTED_ANSWER = "The capital of France is Paris."

# Enough for one short chat, so that the start waits neither for the memory of a large cache nor for the largest step,
# which the engine runs once to measure it.
_SMALL_SERVER = [
    "--max-model-len", "2048", "--max-num-seqs", "8", "--max-num-batched-tokens", "256",
    "--kv-cache-memory-bytes", str(256 << 20),
]  # fmt: skip
_CHAT_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class DemoOptions:
    """What the command line asks for; `model` None means SmolLM2-135M-Instruct."""

    question: str = DEFAULT_QUESTION
    system: str = DEFAULT_SYSTEM
    model: str | None = None
    max_tokens: int = 64
    start_timeout: float = 600.0  # a bound, not an expectation: a failed start is noticed when the process ends
    serve_arguments: tuple[str, ...] = ()


def run_demo(options: DemoOptions, console: Console) -> int:
    """Run the demo and return the exit code: 0 only if the answer and the device are right."""
    try:
        with interrupts_raise():
            return _serve_and_ask(options, console)
    except (CheckpointError, ServerError, ChatError) as error:
        _error(console, str(error))
        return 1
    except Interrupted as interrupt:
        console.print(f"{interrupt}; the server is shut down")
        return interrupt.exit_code


def _serve_and_ask(options: DemoOptions, console: Console) -> int:
    begin = time.perf_counter()
    model, name = options.model, options.model
    if model is None or name is None:
        with console.status(f"preparing {MODEL_NAME}"):
            model, name = str(smollm2_checkpoint()), MODEL_NAME
    console.print(f"model     {name}" + (f" in {model}" if name != model else ""), soft_wrap=True)

    with VllmServer(_arguments(options, model, name), _environment(model)) as server:
        _wait(server, options.start_timeout, console)
        console.print(f"server    {server.url}, ready after {time.perf_counter() - begin:.0f} s")
        with server.client(timeout=_CHAT_PAUSE_SECONDS) as client:
            device = served_device(client)
            console.print(f"device    {device.weights_on} ({device.name})")
            console.print(f"question  {options.question}", markup=False)
            console.print("answer    ", end="")
            answer = stream_chat(
                client, name, options.question, options.max_tokens, lambda text: _show(console, text), options.system
            )
            console.print()
        rate = answer.tokens_per_second
        console.print(
            f"speed     first token after {answer.seconds_to_first_token * 1000:.0f} ms, "
            + (f"then {rate:.1f} tokens/s " if rate else "")
            + f"({answer.completion_tokens} tokens)"
        )
        console.print("shutting the server down")
    default = (options.model, options.question, options.system) == (None, DEFAULT_QUESTION, DEFAULT_SYSTEM)
    found = problems(answer, device, EXPECTED_ANSWER if default else None)
    for problem in found:
        _error(console, problem)
    return 1 if found else 0


def _arguments(options: DemoOptions, model: str, name: str) -> list[str]:
    extension = "ascend_integration.demo.device_report.DeviceReport"
    small = _SMALL_SERVER if options.model is None else []
    return [model, "--served-model-name", name, "--worker-extension-cls", extension, *small, *options.serve_arguments]


def _environment(model: str) -> dict[str, str]:
    environment = {"VLLM_NO_USAGE_STATS": "1", "VLLM_SERVER_DEV_MODE": "1"}
    if Path(model).is_dir():
        environment["HF_HUB_OFFLINE"] = "1"
    return environment


def _wait(server: VllmServer, limit: float, console: Console) -> None:
    last_line = TextColumn("{task.fields[line]}")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), last_line)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting vllm serve", total=None, line="")
        # Brackets in a log line are text, not markup of the display.
        server.wait_ready(limit, lambda line: progress.update(task, line=line[-80:].replace("[", "\\[")))


def _show(console: Console, text: str) -> None:
    console.print(text, end="", markup=False, soft_wrap=True)
    console.file.flush()


def _error(console: Console, message: str) -> None:
    console.print("[bold red]error:[/] ", end="")
    console.print(message, markup=False, soft_wrap=True)
