"""`python -m ascend_integration demo` as a user runs it, from another folder; whatever happens, no process stays."""

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from ascend_integration.engine.environment import FIXED_VARIABLES

MARK = "ASCEND_DEMO_TEST_MARK"


@dataclass
class Run:
    """A demo process; its descendants are found by a mark in their environment, even when they lost their parent."""

    folder: Path
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        # These suit engines inside the test process; the demo must do without.
        environment = {name: value for name, value in os.environ.items() if name not in FIXED_VARIABLES}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ascend_integration", "demo", *arguments],
            cwd=self.folder,
            env={**environment, MARK: self.mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return self.process

    def living(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue  # it ended meanwhile, or is another user's
        return found

    def server(self, seconds: float) -> psutil.Process:
        """The API server, once it runs."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for process in self.living():
                if "serve" in process.cmdline():
                    return process
            time.sleep(0.1)
        raise AssertionError("the demo started no server")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    demo = Run(tmp_path)
    yield demo
    for process in demo.living():
        process.kill()


@pytest.mark.timeout(330)
def test_answer_device_and_speed(run):
    output, _ = run.start().communicate(timeout=280)
    assert run.process.returncode == 0, output
    assert "answer    The capital of France is Paris." in output
    assert re.search(r"device    npu:0 \(Ascend\w+\)", output)
    assert re.search(r"first token after \d+ ms, then \d+\.\d tokens/s \(8 tokens\)", output)
    assert run.living() == []


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_interrupted_while_starting(run, signum):
    process = run.start()
    run.server(seconds=120)
    process.send_signal(signum)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signum, output
    assert f"ended by {signum.name}; the server is shut down" in output
    assert run.living() == []


def test_killed_without_a_chance_to_clean_up(run):
    process = run.start()
    run.server(seconds=120)
    process.kill()
    process.communicate(timeout=10)
    deadline = time.monotonic() + 60
    while run.living() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert run.living() == []


def test_a_server_that_fails_is_reported_with_its_log(run):
    output, _ = run.start("--model", str(run.folder / "no-such-model")).communicate(timeout=200)
    assert run.process.returncode == 1, output
    failure = r"error: vllm serve ended with status \d+ before it was ready; full log in (.*\.log), its end:"
    log = re.search(failure, output)
    assert log is not None, output
    assert "no-such-model" in output[log.end() :]
    assert run.living() == []
    assert "no-such-model" in Path(log[1]).read_text(), "the log of a failed run is kept"
    Path(log[1]).unlink()


def test_a_server_that_takes_too_long_is_ended(run):
    output, _ = run.start("--start-timeout", "2").communicate(timeout=120)
    assert run.process.returncode == 1, output
    assert "error: vllm serve was not ready after 2 s" in output
    assert run.living() == []
