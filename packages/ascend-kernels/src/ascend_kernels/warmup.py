"""``python -m ascend_kernels.warmup``: compile, before serving, what the operators declare worth it.

What an operator launches follows from its launch plan for the device (:func:`ascend_kernels.calls.launches_of`), so
there is no list of specialisations to keep. Besides the declared calls, a log of calls (``ASCEND_KERNELS_CALL_LOG``) of
an earlier run can be given: then all that it served is compiled.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ascend_kernels.calls import Call, launches_of, read_call_log
from ascend_kernels.launch import Launch, compile_launch
from ascend_kernels.library import OPERATORS
from ascend_kernels.target import Target, current_target


@dataclass(frozen=True, slots=True)
class Specialisation:
    """What is compiled once.

    Attributes:
        operator: the operator that launches it.
        call: the label of the first call that does.
        launch: the launch, its tensors without data.
    """

    operator: str
    call: str
    launch: Launch


def specialisations(
    target: Target, operators: Sequence[str] = (), logged: Iterable[tuple[str, Call]] = ()
) -> Iterator[Specialisation]:
    """The distinct kernels and constants that the declared calls of operators, and the logged ones, launch on a target.

    Args:
        target: whose launch plans apply.
        operators: names; all operators if there are none.
        logged: calls of a log, with their operators' names, besides the declared ones.

    Raises:
        ValueError: there is no operator of a name; says which there are.
    """
    if unknown := sorted({*operators, *(name for name, _ in logged)} - OPERATORS.keys()):
        raise ValueError(f"no operator is called {', '.join(unknown)}; there are {', '.join(sorted(OPERATORS))}")
    declared = [(name, call) for name in operators or sorted(OPERATORS) for call in OPERATORS[name].calls()]
    seen: set[str] = set()
    for name, call in [*declared, *logged]:
        for launch in launches_of(OPERATORS[name].triton(), call, target):
            key = _key(launch)
            if key not in seen:
                seen.add(key)
                yield Specialisation(name, call.label, launch)


def _key(launch: Launch) -> str:
    """What Triton compiles anew for: kernel, constants, options, dtypes, which integers are 1 or multiples of 16."""

    def kind(value: object) -> str:
        if isinstance(value, torch.Tensor):
            return str(value.dtype)
        if isinstance(value, int) and not isinstance(value, bool):
            return f"int{value == 1}{value % 16 == 0}{-(2**31) <= value < 2**31}"
        return type(value).__name__

    frozen = getattr(launch.kernel, "do_not_specialize", None) or ()
    names = [parameter.name for parameter in getattr(launch.kernel, "params", ())]
    kinds = [
        type(value).__name__ if index < len(names) and names[index] in frozen else kind(value)
        for index, value in enumerate(launch.arguments)
    ]
    return f"{launch.kernel.__module__}.{launch.kernel.__name__} {kinds} {sorted(launch.options.items(), key=str)}"


def warm_up(
    device: torch.device, operators: Sequence[str] = (), logged: Iterable[tuple[str, Call]] = ()
) -> list[Specialisation]:
    """Compile them for a device, without running anything; what Triton's cache holds already takes no time.

    Args:
        device: a CUDA device or an NPU.
        operators: names; all operators if there are none.
        logged: calls of a log besides the declared ones, as :func:`ascend_kernels.calls.read_call_log` gives them.

    Returns:
        What has been compiled, in order.

    Raises:
        ValueError: no launch plan exists for the device, or no operator of a name.
    """
    target = current_target(device)
    done = []
    for specialisation in specialisations(target, operators, tuple(logged)):
        compile_launch(specialisation.launch)
        done.append(specialisation)
    return done


def main() -> None:
    """Parse the command line, compile, say what took how long."""
    parser = argparse.ArgumentParser(prog="python -m ascend_kernels.warmup", description=__doc__)
    parser.add_argument("operators", nargs="*", choices=[[], *sorted(OPERATORS)], help="operators; default: all")
    parser.add_argument("--log", type=Path, help="compile the calls of this call log too")
    parser.add_argument("--list", action="store_true", help="print what would be compiled, and compile nothing")
    parser.add_argument("--device", type=torch.device, default=None, help="default: the accelerator that torch finds")
    arguments = parser.parse_args()
    device = arguments.device or torch.accelerator.current_accelerator() or torch.device("cpu")
    logged = read_call_log(arguments.log) if arguments.log else []
    if arguments.list:
        for found in specialisations(current_target(device), arguments.operators, logged):
            print(f"{found.operator} {found.call}: {found.launch.kernel.__name__}")
        return
    started = time.monotonic()
    count = len(warm_up(device, arguments.operators, logged))
    print(f"{count} specialisations compiled for {device} in {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
