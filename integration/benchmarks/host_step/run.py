"""Host time per decode step with compute made free: this platform, and another one beside it in the same session."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

MEASURE = Path(__file__).with_name("measure.py")
LIMIT_US = {1: 900, 8: 1000, 64: 1700}
LIMIT_RATIO = 0.85
LIMIT_TASKS_PER_LAYER = 12
LIMIT_OPS_OUTSIDE = 25


def measure(python: Path, model: Path, engine: dict[str, Any], steps: int, batches: str) -> dict[str, Any]:
    """Run ``measure.py`` under an interpreter; its last line is the result."""
    environment = {
        **os.environ,
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "ASCEND_SIM_ORACLE_FP32": "1",
    }
    command = [
        str(python), "-W", "ignore", str(MEASURE), str(model),
        "--engine", json.dumps(engine), "--steps", str(steps), "--batches", batches,
    ]  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise typer.Exit(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main(
    peer: Annotated[
        Path | None,
        typer.Option(envvar="HOST_STEP_PEER", help="interpreter of another environment with an Ascend platform"),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="processes per platform, alternating")] = 3,
    steps: Annotated[int, typer.Option(min=10, help="decode steps per measurement")] = 100,
    batches: Annotated[str, typer.Option(help="batch sizes, comma separated")] = "1,8,64",
    names: Annotated[bool, typer.Option(help="list the device operators of a step")] = False,
) -> None:
    """Print medians over rounds, the ratio to the peer, device operators and start-up time."""
    from ascend_integration.checkpoints.tiny import TINY_MODELS

    console = Console()
    with tempfile.TemporaryDirectory(prefix="host-step-") as folder:
        model = TINY_MODELS["llama"].save(Path(folder) / "llama")
        platforms: dict[str, tuple[Path, dict[str, Any]]] = {
            "vllm-ascend": (
                Path(sys.executable),
                {"dtype": "float32", "additional_config": {"allow_float32": True}},
            )
        }
        if peer is not None:
            platforms["peer"] = (peer, {"dtype": "float32"})
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in platforms}
        for _ in range(rounds):
            for name, (python, engine) in platforms.items():
                results[name].append(measure(python, model, engine, steps, batches))

    def median(name: str, batch: str, key: str) -> float:
        return statistics.median(value for result in results[name] for value in result["batches"][batch][key])

    failed = False
    columns = ["platform", "batch", "wall µs/step", "cpu µs/step", "ratio", "ops outside", "tasks per layer"]
    table = Table(*columns, title="host time per decode step, compute free")
    for batch in batches.split(","):
        for name in platforms:
            wall, cpu = median(name, batch, "wall_us"), median(name, batch, "cpu_us")
            last = results[name][-1]["batches"][batch]
            ratio = ""
            if name == "vllm-ascend":
                if peer is not None:
                    value = cpu / median("peer", batch, "cpu_us")
                    failed |= value > LIMIT_RATIO
                    ratio = f"{value:.2f}"
                failed |= last["ops_outside"] > LIMIT_OPS_OUTSIDE
                failed |= last["graph_tasks_per_layer"] > LIMIT_TASKS_PER_LAYER
            table.add_row(
                name, batch, f"{wall:.0f}", f"{cpu:.0f}", ratio,
                f"{last['ops_outside']:.1f}", f"{last['graph_tasks_per_layer']:.1f}",
            )  # fmt: skip
    console.print(table)
    for name in platforms:
        seconds = statistics.median(result["start_up_s"] for result in results[name])
        console.print(f"{name}: start-up {seconds:.1f} s, graphs {results[name][0]['graph_mode']}, "
                      f"async scheduling {results[name][0]['async_scheduling']}", highlight=False)  # fmt: skip
        if names:
            console.print(results[name][-1]["batches"][batches.split(",")[0]]["names"])
    console.print(
        f"limits: cpu ratio {LIMIT_RATIO}, {LIMIT_OPS_OUTSIDE} operators outside the graph, "
        f"{LIMIT_TASKS_PER_LAYER} tasks per layer inside (embedding, final norm and the shared workspace included); "
        f"on a machine where the prototype takes 1032/1165/2119 µs: {LIMIT_US}",
        highlight=False,
    )
    if failed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
