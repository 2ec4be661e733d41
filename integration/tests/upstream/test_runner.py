"""Groups of tests as vLLM has them, in a folder of our own: what each process leaves behind is the result."""

import os
import sys
from pathlib import Path

import pytest

from ascend_integration.upstream.record import Outcome, Result, results
from ascend_integration.upstream.runner import environment, run_group
from ascend_integration.upstream.selection import Group, Selection

TESTS = """
import os, signal, time
import pytest

def test_passes(): pass
def test_fails(): assert 1 == 2, "the values differ"
def test_skips(): pytest.skip("ROCm only")
def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
def test_runs_after_it(): pass
@pytest.mark.xfail(reason="known to vLLM")
def test_expected(): assert False
def test_leaves_a_log():
    print("(EngineCore) ERROR core.py:1] ValueError: the root cause")
    raise RuntimeError("Engine core failed")
@pytest.mark.parametrize("step", [1])
def test_sleeps(step): time.sleep(60)
@pytest.fixture
def broken():
    yield
    raise RuntimeError("not taken down")
def test_teardown(broken): pass
"""
BROKEN = "import a_package_that_is_not_there\n"
SKIPPED = 'import pytest\npytest.skip("CUDA only", allow_module_level=True)\n'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sources")
    (root / "tests").mkdir()
    (root / "tests" / "test_some.py").write_text(TESTS)
    (root / "tests" / "test_broken.py").write_text(BROKEN)
    (root / "tests" / "test_left_out.py").write_text(SKIPPED)
    (root / "pyproject.toml").write_text("")
    return root


def run(root: Path, outcomes: Path, *paths: str) -> dict[str, Result]:
    home = Path(os.devnull)
    group = Group("some", paths, seconds=1)
    found = results(run_group(group, root, environment(home, home, root), outcomes), Selection((group,), (), (), ()))
    return {result.test.removeprefix("test_some.py::"): result for result in found}


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    return run(root, tmp_path_factory.mktemp("outcomes"), "test_some.py", "test_broken.py", "test_left_out.py")


@pytest.mark.parametrize(
    ("test", "outcome", "text"),
    [
        ("test_passes", Outcome.PASSED, ""),
        ("test_fails", Outcome.FAILED, "AssertionError: the values differ assert 1 == 2"),
        ("test_skips", Outcome.NOT_APPLICABLE, "vLLM leaves it out: ROCm only"),
        ("test_dies", Outcome.FAILED, "the process ended in it: signal 9"),
        ("test_runs_after_it", Outcome.PASSED, ""),
        ("test_expected", Outcome.NOT_APPLICABLE, "vLLM leaves it out: expected to fail: known to vLLM"),
        ("test_leaves_a_log", Outcome.FAILED, "RuntimeError: Engine core failed (logged: ValueError: the root cause)"),
        ("test_sleeps[1]", Outcome.FAILED, "Failed: Timeout (>1.0s) from pytest-timeout."),
        ("test_teardown", Outcome.FAILED, "RuntimeError: not taken down"),
        ("test_left_out.py", Outcome.NOT_APPLICABLE, "vLLM leaves it out: CUDA only"),
        ("test_broken.py", Outcome.FAILED, "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"),
    ],
)
def test_every_test_has_its_outcome(found: dict[str, Result], test: str, outcome: Outcome, text: str) -> None:
    assert found[test].outcome is outcome
    assert (found[test].error or found[test].reason) == text


def test_no_other_test_has_one(found: dict[str, Result]) -> None:
    assert len(found) == 11


def test_what_has_an_outcome_is_not_run_again(root: Path, tmp_path: Path) -> None:
    marker = tmp_path / "runs"
    (root / "tests" / "test_count.py").write_text(
        f"from pathlib import Path\ndef test_once(): Path({str(marker)!r}).open('a').write('x')\n"
    )
    for _ in range(2):
        assert run(root, tmp_path, "test_count.py")["test_count.py::test_once"].outcome is Outcome.PASSED
    assert marker.read_text() == "x"


def test_models_are_found_without_a_hub(tmp_path: Path) -> None:
    variables = environment(tmp_path, tmp_path / "packages", tmp_path / "root")
    assert variables["HF_HOME"] == str(tmp_path)
    assert variables["HF_HUB_OFFLINE"] == "1"
    # vLLM's tests come before, so that `import tests` finds them, and its own packages after everything of ours.
    assert variables["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path / "root")
    assert variables["PYTHONPATH"].split(os.pathsep)[-1] == str(tmp_path / "packages")
    assert set(filter(None, sys.path)) <= set(variables["PYTHONPATH"].split(os.pathsep))
