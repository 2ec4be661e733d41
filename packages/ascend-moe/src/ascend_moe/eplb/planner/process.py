"""The serving process's end of the planner."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from ascend_moe.eplb.planner.worker import Failed, Ready, Start
from ascend_moe.eplb.problem import Plan, Problem


class PlannerError(RuntimeError):
    """No plan came; the present placement stays, and another problem may be submitted."""


class PlannerDiedError(PlannerError):
    """The planning process ended."""


class PlannerTimeoutError(PlannerError):
    """The planning process took too long, and was ended."""


class PlannerProcess:
    """A policy in a process of its own; a problem is submitted, and its plan fetched when it is there.

    No method waits for the planner unless asked to. Whatever goes wrong is raised by `poll`, once, and ends the
    process; the next `submit` starts a new one. The process ends with the one that made it.

    Args:
        policy: name of the policy in the group ``ascend_moe.eplb_policies``.
        options: keyword arguments of its class.
        timeout: seconds from `submit` until the planner is given up, the start of its process included.
    """

    def __init__(self, policy: str, options: Mapping[str, Any] | None = None, *, timeout: float = 300.0) -> None:
        if timeout <= 0:
            raise ValueError(f"timeout is {timeout} seconds; it is above 0")
        self.policy = policy
        self.options = dict(options or {})
        self.timeout = timeout
        self.starts = 0
        """How many processes have been started: 1 more than were lost, once the first problem is submitted."""
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._ready = False
        self._problem: Problem | None = None
        self._deadline = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def busy(self) -> bool:
        """Whether a problem is submitted whose plan has not been fetched."""
        return self._problem is not None

    @property
    def pid(self) -> int | None:
        """Process id of the planner; None before the first problem and after a failure."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process ahead of the first problem; `submit` does it where there is none."""
        if self._process is not None:
            return
        # Not by multiprocessing, which refuses children of daemons, as vLLM's workers are.
        ours, theirs = Pipe()
        program = "from ascend_moe.eplb.planner.worker import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._kill_at_exit = weakref.finalize(self, process.kill)
        ours.send(Start(list(sys.path), self.policy, self.options))
        self._process, self._connection, self._ready = process, ours, False
        self.starts += 1

    def submit(self, problem: Problem) -> None:
        """Hand over `problem` and return at once.

        Raises:
            ValueError: the plan of an earlier problem has not been fetched.
        """
        if self.busy:
            raise ValueError("the planner is busy: fetch the plan of the problem submitted before with `poll`")
        self.start()
        self._problem, self._deadline = problem, time.monotonic() + self.timeout
        if self._ready:
            self._send(problem)

    def poll(self, wait: float = 0.0) -> Plan | None:
        """Return the plan if it is there within `wait` seconds, else None.

        Raises:
            ValueError: nothing is submitted.
            PlannerDiedError: the process ended, with the exit code or signal.
            PlannerTimeoutError: the plan is not there `timeout` seconds after `submit`.
            PlannerError: the policy cannot be had, or what it proposed is not valid; the message says which.
        """
        if self._problem is None or self._connection is None or self._process is None:
            raise ValueError("no problem is submitted")
        until = time.monotonic() + wait
        while True:
            now = time.monotonic()
            if now >= self._deadline:
                self.close()
                raise PlannerTimeoutError(
                    f"the EPLB policy {self.policy!r} had no plan after {self.timeout:g} s; the placement stays"
                )
            # Also true when the other end is closed, which `recv` then says.
            if self._connection.poll(max(0.0, min(until, self._deadline) - now)):
                plan = self._receive(self._connection)
                if plan is not None:
                    return plan
            elif time.monotonic() >= until:
                return None

    def plan(self, problem: Problem) -> Plan:
        """Submit `problem` and wait for its plan; raises as `submit` and `poll`."""
        self.submit(problem)
        while (plan := self.poll(self.timeout)) is None:
            pass
        return plan

    def close(self) -> None:
        """End the process; a problem that is submitted is dropped."""
        process, connection = self._process, self._connection
        self._process = self._connection = self._problem = None
        if connection is not None:
            connection.close()
        if process is not None:
            self._kill_at_exit()
            process.wait()

    def _receive(self, connection: Connection) -> Plan | None:
        """Take one message; return it if it is the plan."""
        try:
            answer = connection.recv()
        except (EOFError, ConnectionResetError):
            code = self._exit_code()
            self.close()
            raise PlannerDiedError(
                f"the planning process of the EPLB policy {self.policy!r} ended with {code}; the placement stays"
            ) from None
        if isinstance(answer, Ready):
            self._ready = True
            if self._problem is not None:
                self._send(self._problem)
            return None
        if isinstance(answer, Failed):
            self.close()
            raise PlannerError(f"the EPLB policy {self.policy!r} failed; the placement stays. {answer.message}")
        self._problem = None
        return answer

    def _exit_code(self) -> str:
        """Return how the process ended, in words."""
        if self._process is None:
            return "no exit code"
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "its connection closed"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _send(self, problem: Problem) -> None:
        """Send without waiting: a process that is stopped would not empty the pipe."""
        threading.Thread(target=_send, args=(self._connection, problem), name="eplb-submit", daemon=True).start()


def _send(connection: Connection, problem: Problem) -> None:
    try:
        connection.send(problem)
    except OSError:
        return  # the process ended, which `poll` finds and reports
