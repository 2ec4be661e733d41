"""Run groups of vLLM's tests, each in a process of its own, so that what has an outcome is never run twice.

A process that dies, or takes too long over a test, costs that test alone: it counts as failed and the rest goes on.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from ascend_integration.checkpoints.cache import default_cache_root
from ascend_integration.upstream.hub import stand_in_home
from ascend_integration.upstream.plugin import DONE, OUTCOMES
from ascend_integration.upstream.sdist import adapted_tests, fetch_test_requirements
from ascend_integration.upstream.selection import Adaptation, Group

# After this the process is stuck where pytest's own limit does not reach it.
GRACE_SECONDS = 60
IMPORT_SECONDS = 300


def outcomes_folder(cache_root: Path | None = None) -> Path:
    """Where the outcomes of single tests are kept, one file of lines per group."""
    return (cache_root or default_cache_root()) / "upstream" / "outcomes"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of lines; empty without the file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def finished(lines: list[dict[str, Any]]) -> set[str]:
    """The ids that have an outcome."""
    return {line["id"] for line in lines if "id" in line}


def unfinished(lines: list[dict[str, Any]]) -> str | None:
    """The test in which a process ended, if it did."""
    if lines and "started" in lines[-1] and lines[-1]["started"] not in finished(lines):
        return lines[-1]["started"]
    return None


def environment(home: Path, packages: Path, root: Path) -> dict[str, str]:
    """The environment of the tests: models from `home`, packages beside ours, our sources as this process has them."""
    paths = [str(root), *(path for path in sys.path if path), str(packages)]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_NO_USAGE_STATS": "1",
        # Comparisons with transformers in float32, which the vendor's fused attention does not take.
        "ASCEND_SIM_ORACLE_FP32": "1",
    }


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and the engines that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it and all its children have ended
    process.wait()


def _watch(process: subprocess.Popen[bytes], outcomes: Path, seconds: float) -> str:
    """Wait for the process; why it ended if by us or by a signal, else an empty text."""
    size, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.5)
        if (now := outcomes.stat().st_size) != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > seconds:
            return f"nothing for {seconds:.0f} s"
    return f"signal {-process.returncode}" if process.returncode < 0 else f"exit status {process.returncode}"


def run_group(group: Group, root: Path, variables: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    """Run what has no outcome yet and return all lines of the group."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes, done, log = folder / f"{group.name}.jsonl", folder / f"{group.name}.done", folder / f"{group.name}.log"
    outcomes.touch()
    words = [
        *(sys.executable, "-m", "pytest", "--quiet", "-p", "ascend_integration.upstream.plugin"),
        *("-p", "no:cacheprovider", "--continue-on-collection-errors", f"--timeout={group.seconds}"),
        *(f"tests/{path}" for path in group.paths),
    ]
    while True:
        before = finished(read_lines(outcomes))
        done.write_text("\n".join(sorted(before)))
        files = {OUTCOMES: str(outcomes), DONE: str(done)}
        with log.open("ab") as stream:
            process = subprocess.Popen(
                words, cwd=root, env={**variables, **files}, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream,
                start_new_session=True,
            )  # fmt: skip
            try:
                why = _watch(process, outcomes, max(group.seconds + GRACE_SECONDS, IMPORT_SECONDS))
            finally:
                _end(process)
        lines = read_lines(outcomes)
        if (test := unfinished(lines)) is None:
            return lines
        line = {"id": test, "outcome": "failed", "error": f"the process ended in it: {why}"}
        with outcomes.open("a") as stream_of_lines:
            stream_of_lines.write(json.dumps(line) + "\n")


def _exit_on_termination() -> None:
    """Let SIGTERM end this process as an exception, so that the tests' processes, a session of their own, end too."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def run_groups(groups: tuple[Group, ...], adaptations: tuple[Adaptation, ...], again: bool) -> None:
    """Run the groups and print a line for each; `again` forgets their outcomes first."""
    _exit_on_termination()
    root, packages, home = adapted_tests(adaptations), fetch_test_requirements(), stand_in_home()
    variables, folder = environment(home, packages, root), outcomes_folder()
    for group in groups:
        if again:
            (folder / f"{group.name}.jsonl").unlink(missing_ok=True)
        started = time.monotonic()
        lines = run_group(group, root, variables, folder)
        counts = {kind: sum(line.get("outcome") == kind for line in lines) for kind in ("passed", "failed", "skipped")}
        said = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        print(f"{group.name}: {said} lines ({time.monotonic() - started:.0f} s)", flush=True)
