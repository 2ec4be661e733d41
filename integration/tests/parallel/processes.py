"""A driver process with all that it starts, in a session of its own that is ended as a whole."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

DRIVER = Path(__file__).with_name("driver.py")


@dataclass(frozen=True)
class Driver:
    """A running driver, the file for its results and the one with everything its processes print."""

    process: subprocess.Popen[bytes]
    results: Path
    log: Path

    def session(self) -> list[psutil.Process]:
        """Every living process that the driver started, directly or not, and the driver."""
        found = []
        for process in psutil.process_iter():
            try:
                if os.getsid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (ProcessLookupError, psutil.NoSuchProcess):
                continue  # it ended meanwhile
        return found

    def session_when_ended(self, seconds: float) -> list[psutil.Process]:
        """What is left of the session; waits up to `seconds` for it to be empty."""
        deadline = time.monotonic() + seconds
        while (left := self.session()) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def wait_for_results(self, seconds: float) -> list[list[list[int]]]:
        """Tokens of each request of each batch; `AssertionError` with the log if there are none in time."""
        deadline = time.monotonic() + seconds
        while not self.results.exists() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.results.exists(), f"no results, exit status {self.process.poll()}:\n{self.log.read_text()[-8000:]}"
        return json.loads(self.results.read_text())

    def kill_session(self) -> None:
        """End whatever is left, without asking."""
        for process in self.session():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue  # it ended meanwhile
        self.process.wait(timeout=30)


@contextmanager
def driver(
    folder: Path, devices: int, engine: dict[str, Any], batches: list[list[dict[str, Any]]], endless: bool = False
) -> Iterator[Driver]:
    """Start `driver.py` with so many simulated devices; nothing of it outlives the block."""
    job, results, log = folder / "job.json", folder / "results.json", folder / "log.txt"
    job.write_text(json.dumps({"engine": engine, "batches": batches, "endless": endless, "results": str(results)}))
    environment = {**os.environ, "ASCEND_SIM_DEVICES": str(devices), "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(DRIVER), str(job)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    running = Driver(process, results, log)
    try:
        yield running
    finally:
        running.kill_session()
