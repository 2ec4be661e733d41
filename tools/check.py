"""Run the checks and tests of the repository, all of them or the ones named, and sum up.

    tools/check.py              everything, in the order below; what `make test` and CI run
    tools/check.py NAME …       the stages named
    tools/check.py --list       the names

Every stage runs even if one before it failed, so that one run shows everything that is wrong.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
PYTHON = str(BIN / "python")


def folders(parent: str) -> list[str]:
    """Return the names of the folders in `parent`, sorted."""
    return sorted(path.name for path in (ROOT / parent).iterdir() if path.is_dir() and path.name != "__pycache__")


SOURCES = [
    *(f"packages/{name}/src" for name in folders("packages")),
    "integration/src",
    "integration/sim/src",
    "tools",
]

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # one thread per test process: two processes share two cores
    "HF_HUB_OFFLINE": "1",  # no test may depend on a model hub
    "VLLM_NO_USAGE_STATS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True)
class Stage:
    """One command.

    Attributes:
        name: what the command line calls it.
        command: program and arguments, run at the root of the repository.
        tests: folders for pytest where the stage is a test run; `command` then holds pytest's options.
    """

    name: str
    command: tuple[str, ...]
    tests: tuple[str, ...] = ()

    def words(self, report: Path) -> list[str]:
        """Return the command line; pytest writes its results to `report`."""
        if not self.tests:
            return list(self.command)
        return [PYTHON, "-m", "pytest", f"--junit-xml={report}", *self.command, *self.tests]


# The engines of one test module share a process, so a file is never split between processes. Files start in the order
# of their folders: a long one that starts last would leave a core idle.
PARALLEL = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder")


def in_order(parent: str, first: tuple[str, ...], without: str = "") -> tuple[str, ...]:
    """Return the test folders in `parent`, those named in `first` before the others."""
    rest = [name for name in folders(parent) if name not in (*first, without)]
    return tuple(f"{parent}/{name}" for name in (*first, *rest))


STAGES = [
    Stage("lint", (str(BIN / "ruff"), "check")),
    Stage("format", (str(BIN / "ruff"), "format", "--check")),
    Stage("types", (PYTHON, "-m", "mypy", *SOURCES)),
    Stage("layers", (str(BIN / "lint-imports"), "--no-cache", "--no-logo")),
    Stage("lock", (PYTHON, "tools/lock.py", "check")),
    Stage("dependencies", (PYTHON, "tools/dependencies.py")),
    Stage("size", (PYTHON, "tools/size.py")),
    Stage("patches", (PYTHON, "-m", "vllm_ascend.patch")),
    Stage("sim", PARALLEL, ("integration/sim/tests",)),
    Stage("kernels", PARALLEL, ("packages/ascend-kernels/tests",)),
    Stage("lowering", (PYTHON, "-W", "ignore", "-m", "ascend_kernels.lowering")),
    Stage("platform", PARALLEL, in_order("packages/ascend-platform/tests", first=("processes",))),
    Stage("moe", PARALLEL, ("packages/ascend-moe/tests",)),
    Stage("e2e", PARALLEL, in_order("integration/tests", first=("parallel", "equality", "demo"), without="packaging")),
    Stage("packaging", ("-n", "2", "--dist", "loadscope"), ("integration/tests/packaging",)),
]

COUNTED = ("tests", "failures", "errors", "skipped")


def counts(report: Path) -> dict[str, int]:
    """Return the number of tests, failures, errors and skips in a JUnit report; zeros without one."""
    total = dict.fromkeys(COUNTED, 0)
    if report.is_file():
        for suite in ElementTree.parse(report).iter("testsuite"):
            for name in COUNTED:
                total[name] += int(suite.get(name, "0"))
    return total


def run(stages: list[Stage]) -> bool:
    """Run the stages, print a table and the number of tests, and return whether all is well."""
    rows, total = [], dict.fromkeys(COUNTED, 0)
    with tempfile.TemporaryDirectory() as folder:
        for stage in stages:
            print(f"\n── {stage.name} ──", flush=True)
            report, started = Path(folder) / f"{stage.name}.xml", time.monotonic()
            result = subprocess.run(
                stage.words(report), cwd=ROOT, env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL, check=False
            )
            seconds, found = time.monotonic() - started, counts(report)
            total = {name: total[name] + found[name] for name in COUNTED}
            # A test stage without a single test is a mistake in the stage, not a success.
            good = result.returncode == 0 and (not stage.tests or found["tests"] > 0)
            tests = f"{found['tests']:5d} tests" if stage.tests else ""
            rows.append((good, f"{stage.name:13s}{'ok' if good else 'FAILED':8s}{seconds:6.0f} s {tests}"))
    print("\n" + "\n".join(row for _, row in rows))
    if any(stage.tests for stage in stages):
        failed = total["failures"] + total["errors"]
        print(f"\n{total['tests'] - failed - total['skipped']} passed, {failed} failed, {total['skipped']} skipped")
    return all(good for good, _ in rows)


def main(arguments: list[str]) -> None:
    """Run the stages named on the command line."""
    names = [stage.name for stage in STAGES]
    if arguments == ["--list"]:
        print("\n".join(names))
        return
    if unknown := [name for name in arguments if name not in names]:
        sys.exit(f"no stage is called {unknown[0]!r}; there are {', '.join(names)}")
    if not run([stage for stage in STAGES if not arguments or stage.name in arguments]):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
