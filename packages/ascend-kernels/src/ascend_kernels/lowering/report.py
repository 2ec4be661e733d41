"""Every declared call of every operator, lowered; one line of results per operator and target."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from ascend_kernels.calls import Call, launches_of
from ascend_kernels.library import OPERATORS
from ascend_kernels.lowering.compiler import LoweringError, to_hivm, to_linalg
from ascend_kernels.lowering.signature import signature_of
from ascend_kernels.lowering.traffic import NotStaticError, measure
from ascend_kernels.target import ASCEND_TARGETS, Target

STREAMING_FAMILIES = ("norm", "rope", "activation")
"""Families whose kernels read and write each element once."""
STREAMING_LIMIT = 1.1
"""Most bytes that a kernel of these families may move, as a multiple of the minimum."""


@dataclass(frozen=True, slots=True)
class Result:
    """One call of an operator on one target.

    Attributes:
        operator: its name.
        family: the folder it is in.
        call: the call's label.
        target: the target's name.
        cores: of each kernel that was compiled: ``vector``, ``cube`` or ``mix``.
        unified_buffer: most bytes of the unified buffer that one of its kernels uses.
        traffic: bytes moved as a multiple of the minimum; None if the call is not accounted for.
        problems: why it does not pass; empty if it does.
    """

    operator: str
    family: str
    call: str
    target: str
    cores: tuple[str, ...]
    unified_buffer: int
    traffic: float | None
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    operator: str
    call: Call
    kernels: dict[str, tuple[int, ...]]  # by target: which of the call's launches no earlier call has compiled


def family_of(operator: str) -> str:
    """The family of an operator, from the package that its definition lies in."""
    return OPERATORS[operator].naive.__module__.split(".")[2]


def _lower(task: _Task) -> list[Result]:
    """Lower the launches of a call for each target; what targets have in common is computed once."""
    linalg: dict[str, str] = {}
    traffic: dict[str, int] = {}
    return [_lower_for(task, ASCEND_TARGETS[name], linalg, traffic) for name in task.kernels]


def _lower_for(task: _Task, target: Target, linalg: dict[str, str], traffic: dict[str, int]) -> Result:
    """Lower the launches of a call; keeps intermediate code by signature, and traffic by the final code, to share."""
    cores: list[str] = []
    problems: list[str] = []
    highest, moved = 0, 0
    minimum = task.call.minimum_bytes
    for index, launch in enumerate(launches_of(OPERATORS[task.operator].triton(), task.call, target)):
        if index not in task.kernels[target.name] and minimum is None:
            continue
        signature = signature_of(launch)
        key = signature.key(launch.kernel)
        name = launch.kernel.__name__
        try:
            if key not in linalg:
                linalg[key] = to_linalg(launch.kernel, signature)
            lowered = to_hivm(linalg[key], target.name, signature.multibuffer)
            if minimum is not None:
                # The functions' text without the module's head, which names the target.
                body = f"{index} {launch.grid} {lowered.hivm[lowered.hivm.find('func.func') :]}"
                if body not in traffic:
                    traffic[body] = measure(lowered.hivm, signature, launch.grid).total
                moved += traffic[body]
        except LoweringError as error:
            problems.append(f"{name}: {error}")
            continue
        except NotStaticError as error:
            problems.append(f"{name}: traffic is not static: {error}")
        cores.append(lowered.core)
        highest = max(highest, lowered.unified_buffer)
        if lowered.retries:
            problems.append(f"{name}: fits only after retries ({lowered.retries})")
    family = family_of(task.operator)
    ratio = moved / minimum if minimum and not problems else None
    if ratio is not None and family in STREAMING_FAMILIES and ratio > STREAMING_LIMIT:
        problems.append(f"moves {ratio:.2f} times the minimum; at most {STREAMING_LIMIT} are allowed")
    return Result(task.operator, family, task.call.label, target.name, tuple(cores), highest, ratio, tuple(problems))


def lower_calls(calls: Iterable[tuple[str, Call]], targets: Sequence[Target], processes: int) -> list[Result]:
    """Lower what the calls (operator and call) launch on the targets, every specialisation once per target."""
    seen: set[tuple[str, str]] = set()
    tasks = []
    for operator, call in calls:
        launcher = OPERATORS[operator].triton()
        kernels = {}
        for target in targets:
            fresh = []
            for index, launch in enumerate(launches_of(launcher, call, target)):
                key = (target.name, signature_of(launch).key(launch.kernel))
                if key not in seen:
                    seen.add(key)
                    fresh.append(index)
            if fresh or call.minimum_bytes is not None:
                kernels[target.name] = tuple(fresh)
        if kernels:
            tasks.append(_Task(operator, call, kernels))
    if processes == 1:
        return [result for task in tasks for result in _lower(task)]
    # A task carries values of small tensors only; workers start afresh so that no lock of a thread is inherited.
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        return [result for results in pool.map(_lower, tasks) for result in results]


def declared_calls(operators: Sequence[str] = ()) -> list[tuple[str, Call]]:
    """The calls that the operators declare; of all operators if none is named.

    Raises:
        KeyError: there is no operator of a name.
    """
    return [(name, call) for name in operators or sorted(OPERATORS) for call in OPERATORS[name].calls()]


def targets_named(names: Sequence[str]) -> list[Target]:
    """Targets by name; all of them if none is named."""
    return [ASCEND_TARGETS[name] for name in names or ASCEND_TARGETS]


_HEADER = ("operator", "target", "calls", "cores", "unified buffer", "bytes / minimum", "result")


def table(results: Sequence[Result]) -> str:
    """A Markdown table, one line per operator and target: worst unified-buffer use, worst traffic, failures."""
    lines = [_HEADER, tuple("---" for _ in _HEADER)]
    for operator, target in dict.fromkeys((result.operator, result.target) for result in results):
        group = [result for result in results if (result.operator, result.target) == (operator, target)]
        cores = Counter(core for result in group for core in result.cores)
        use = max(result.unified_buffer for result in group)
        share = use / ASCEND_TARGETS[target].unified_buffer
        ratios = [result.traffic for result in group if result.traffic is not None]
        failed = sum(1 for result in group if result.problems)
        lines.append(
            (
                operator,
                target,
                str(len(group)),
                ", ".join(f"{count} {core}" for core, count in sorted(cores.items())),
                f"{use / 1024:.0f} KiB ({share:.0%})",
                f"{max(ratios):.2f}" if ratios else "not static" if failed else "-",
                f"{failed} FAILED" if failed else "ok",
            )
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
