"""``python -m ascend_kernels.lowering``: lower every declared call, print a table, fail if anything does not pass."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import ascend_kernels  # noqa: F401  registers the operators
from ascend_kernels.calls import read_call_log
from ascend_kernels.library import OPERATORS
from ascend_kernels.lowering.controls import controls, refusal
from ascend_kernels.lowering.report import declared_calls, lower_calls, table, targets_named
from ascend_kernels.target import ASCEND_TARGETS


def main() -> None:
    """Parse the command line, lower, report."""
    parser = argparse.ArgumentParser(prog="python -m ascend_kernels.lowering", description=__doc__)
    parser.add_argument("operators", nargs="*", choices=[[], *sorted(OPERATORS)], help="operators; default: all")
    parser.add_argument("--target", action="append", default=[], choices=sorted(ASCEND_TARGETS))
    parser.add_argument("--log", type=Path, help="lower the calls of this call log instead of the declared ones")
    parser.add_argument("--json", type=Path, help="write the results of every call to this file")
    parser.add_argument("--processes", type=int, default=min(len(os.sched_getaffinity(0)), 8))
    arguments = parser.parse_args()

    targets = targets_named(arguments.target)
    good = True
    for control in controls():
        reason = refusal(control, targets[0].name)
        as_it_should = control.reason.lower() in reason.lower() if control.reason else not reason
        good = good and as_it_should
        print(f"control {'ok ' if as_it_should else 'WRONG'} {control.name}: {reason or 'lowers'}")
    calls = read_call_log(arguments.log) if arguments.log else declared_calls(arguments.operators)
    results = lower_calls(calls, targets, arguments.processes)
    print(f"\n{table(results)}\n")
    for result in results:
        for problem in result.problems:
            print(f"FAILED {result.operator} {result.call} {result.target}: {problem}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    if not good or not results or any(result.problems for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
