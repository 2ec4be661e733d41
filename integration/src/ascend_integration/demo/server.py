"""A `vllm serve` child process: started in its own process group, watched, and always taken down whole."""

import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import psutil

from ascend_integration.demo.auth import TOKEN_VARIABLE, RequireToken

_HOST = "127.0.0.1"
_POLL_SECONDS = 0.25
_GRACE_SECONDS = 15.0
_TAIL_LINES = 30
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_LIBC = ctypes.CDLL(None, use_errno=True)


class ServerError(RuntimeError):
    """The server ended or did not become ready in time; the message ends with the last lines of its log."""


class VllmServer:
    """`with VllmServer([...]) as server:` runs `vllm serve` on a free loopback port until the block ends.

    Nothing survives the block: the server gets SIGTERM and 15 seconds, then it and every descendant are killed. If this
    process dies without leaving the block, the kernel sends the server SIGTERM.
    The log file (`log_path`) is removed after a clean end and kept after a failure.
    """

    def __init__(self, arguments: Sequence[str], environment: dict[str, str] | None = None) -> None:
        self._arguments = list(arguments)
        self._environment = environment or {}
        self._token = secrets.token_urlsafe(24)
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        handle, name = tempfile.mkstemp(prefix="vllm-ascend-demo-", suffix=".log")
        os.close(handle)
        self.log_path = Path(name)

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """Process id of the API server, also the id of its process group."""
        return self._running().pid

    def client(self, timeout: float) -> httpx.Client:
        """An HTTP client for this server; `timeout` in seconds applies to connecting and to each pause of a stream."""
        headers = {"Authorization": f"Bearer {self._token}"}
        # The loopback address must not go through a proxy set in the environment.
        return httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        middleware = f"{RequireToken.__module__}.{RequireToken.__qualname__}"
        command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", *self._arguments]
        command += ["--host", _HOST, "--port", str(self._port), "--middleware", middleware]
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environment, TOKEN_VARIABLE: self._token},
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()
        if kind is None:
            self.log_path.unlink(missing_ok=True)

    def wait_ready(self, limit: float, on_wait: Callable[[str], None] = lambda line: None) -> None:
        """Return once `/health` answers 200; `on_wait` gets the log's last line at every poll.

        Raises `ServerError` as soon as the process has ended, or after `limit` seconds.
        """
        deadline = time.monotonic() + limit
        with self.client(timeout=2) as client:
            while True:
                status = self._running().poll()
                if status is not None:
                    raise ServerError(f"vllm serve ended with status {status} before it was ready; {self._log_tail()}")
                try:
                    if client.get("/health").status_code == httpx.codes.OK:
                        return
                except httpx.TransportError:
                    pass  # not listening yet; the process and the deadline are watched above and below
                if time.monotonic() > deadline:
                    raise ServerError(f"vllm serve was not ready after {limit:.0f} s; {self._log_tail()}")
                on_wait(next(reversed(self._log_lines()), ""))
                time.sleep(_POLL_SECONDS)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the server is not started; use it as `with VllmServer(...) as server:`")
        return self._process

    def _stop(self) -> None:
        process = self._running()
        tree = _descendants(process.pid)
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                tree += _descendants(process.pid)
        with suppress(ProcessLookupError):  # the whole group may have ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        for child in tree:
            with suppress(psutil.NoSuchProcess):
                child.kill()  # psutil checks that the id was not reused
        psutil.wait_procs(tree, timeout=_GRACE_SECONDS)
        process.wait()

    def _log_lines(self) -> list[str]:
        with self.log_path.open("rb") as log:
            log.seek(max(0, self.log_path.stat().st_size - 16384))
            return [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]

    def _log_tail(self) -> str:
        return "\n".join([f"full log in {self.log_path}, its end:", *self._log_lines()[-_TAIL_LINES:]])


def _end_with_parent() -> None:
    """Runs in the child before `exec`."""
    if _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return probe.getsockname()[1]


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
