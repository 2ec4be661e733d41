"""What the planning process runs."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ascend_moe.eplb.placement import initial_placement
from ascend_moe.eplb.planning import load_policy, plan
from ascend_moe.eplb.problem import Plan, Problem


@dataclass(frozen=True)
class Start:
    """What a new process is told first.

    Attributes:
        path: where to import from.
        policy: name of the policy.
        options: keyword arguments of its class.
    """

    path: list[str]
    policy: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Ready:
    """The process is ready for problems."""


@dataclass(frozen=True)
class Failed:
    """The policy cannot be had, or its answer is not valid.

    Attributes:
        message: why.
    """

    message: str


Answer = Ready | Failed | Plan


def serve(connection: Connection, name: str, options: dict[str, Any]) -> None:
    """Answer every problem that comes over `connection` until the other end closes it.

    The policy solves a tiny problem first, so that its code is compiled before anyone waits. An error in what was given
    is answered; any other ends the process with a traceback, which the other end notices.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever serves decides when this process ends
    try:
        policy = load_policy(name, **options)
        plan(policy, Problem(np.array([[3.0, 2.0, 1.0]]), initial_placement(1, 3, 2, 1)))
    except (ImportError, ValueError) as error:
        connection.send(Failed(f"{type(error).__name__}: {error}"))
        return
    connection.send(Ready())
    while True:
        try:
            problem: Problem = connection.recv()
        except EOFError:
            return
        answer: Answer
        try:
            answer = plan(policy, problem, name)
        except ValueError as error:
            answer = Failed(f"{type(error).__name__}: {error}")
        connection.send(answer)


def main() -> None:
    """Serve over the connection whose file descriptor is the program's argument."""
    with Connection(int(sys.argv[1])) as connection:
        start: Start = connection.recv()
        sys.path[:] = start.path
        serve(connection, start.policy, start.options)
