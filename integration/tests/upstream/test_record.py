import pytest

from ascend_integration.upstream.record import Outcome, Result, as_record, reasons, results, totals
from ascend_integration.upstream.report import BEGIN, END, page, tables
from ascend_integration.upstream.selection import Group, Reason, Selection

CUDA = Reason("needs CUDA", error="not compiled with CUDA", raised_in="tests")
TEXT = Reason("needs a trained model", tests=("a.py::test_text[*",))
SLOW = Reason("slow", error="Timeout")
SELECTION = Selection((Group("some", ("a.py",), 300),), adaptations=(), needs=(CUDA, TEXT), causes=(SLOW,))


def failed(test: str, error: str, **more: object) -> dict[str, object]:
    return {"id": f"tests/{test}", "outcome": "failed", "error": error, **more}


def passed(test: str) -> dict[str, object]:
    return {"id": f"tests/{test}", "outcome": "passed"}


def result(*lines: dict[str, object]) -> Result:
    (found,) = results(list(lines), SELECTION)
    return found


def test_a_failure_counts_though_the_teardown_passes() -> None:
    lines = [failed("a.py::test_x", "AssertionError: 1 != 2"), passed("a.py::test_x")]
    assert result(*lines) == Result("a.py::test_x", Outcome.FAILED, "cause not known", "AssertionError: 1 != 2")


def test_a_failing_teardown_counts_though_the_test_passed() -> None:
    assert result(passed("a.py::test_x"), failed("a.py::test_x", "Timeout")).reason == "slow"


@pytest.mark.parametrize(
    ("origin", "outcome"), [("tests a.py:test_x", Outcome.NOT_APPLICABLE), ("vllm_ascend worker.py:f", Outcome.FAILED)]
)
def test_asking_for_cuda_excuses_a_test_alone_and_not_us(origin: str, outcome: Outcome) -> None:
    assert result(failed("a.py::test_x", "Torch not compiled with CUDA enabled", origin=origin)).outcome is outcome


def test_what_an_engine_process_logged_is_looked_at_too() -> None:
    line = failed("a.py::test_x", "Engine core failed", logged=["Torch not compiled with CUDA"], origin="tests a.py:f")
    assert result(line).reason == "needs CUDA"


def test_a_reason_by_name_takes_the_brackets_of_parameters_as_they_are() -> None:
    assert result(failed("a.py::test_text[1]", "AssertionError")).outcome is Outcome.NOT_APPLICABLE
    assert result(failed("a.py::test_text1", "AssertionError")).outcome is Outcome.FAILED


def test_a_test_that_passes_needs_no_reason() -> None:
    assert result(passed("a.py::test_text[1]")).outcome is Outcome.PASSED


def test_a_skip_says_what_vllm_gives_as_its_reason() -> None:
    line = {"id": "tests/a.py::test_x", "outcome": "skipped", "error": "Skipped: ROCm only"}
    assert result(line) == Result("a.py::test_x", Outcome.NOT_APPLICABLE, "vLLM leaves it out: ROCm only")


def test_a_skip_without_a_reason_says_so() -> None:
    line = {"id": "tests/a.py::test_x", "outcome": "skipped", "error": "Skipped: "}
    assert result(line).reason == "vLLM leaves it out: no reason given"


def test_folders_of_the_machine_stay_out_of_the_record() -> None:
    error = "OSError: no '/home/me/.cache/x/config.json', see https://a.org/b/c; <Obj at 0x7f0a> 1/2"
    assert result(failed("a.py::test_x", error)).error == (
        "OSError: no '…/config.json', see https://a.org/b/c; <Obj at …> 1/2"
    )


def test_what_was_collected_and_has_no_outcome_was_not_run() -> None:
    assert result({"collected": ["tests/a.py::test_x"]}).outcome is Outcome.NOT_RUN


def test_a_reason_that_fits_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="'anything' would fit every test; give `tests` or `error`"):
        Reason("anything")


def test_an_unknown_group_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no group of tests is called other; there are some"):
        SELECTION.named(["other"])


def test_the_record_has_every_test_once() -> None:
    lines = [
        passed("a.py::test_x[1]"),
        passed("a.py::test_x[2]"),
        failed("a.py::test_x[3]", "Timeout"),
        failed("a.py::test_text[1]", "AssertionError"),
        {"collected": ["tests/a.py::test_x[4]"]},
    ]
    record = as_record(results(lines, SELECTION))
    assert record == {
        "a.py": {
            "passed": {"test_x": 2},
            "failed": {"test_x[3]": {"cause": "slow", "error": "Timeout"}},
            "not applicable": {"needs a trained model": {"test_text": 1}},
            "not run": {"test_x": 1},
        }
    }
    assert totals(record) == {"passed": 2, "failed": 1, "not applicable": 1, "not run": 1}
    assert reasons({"some": record}, Outcome.FAILED) == {"slow": 1}
    assert "| some | 2 | 1 | 1 | 1 | 66.7 % |" in tables({"some": record})


def test_a_file_that_cannot_be_imported_is_one_result() -> None:
    line = failed("b.py", "ImportError: no ray")
    assert as_record(results([line], SELECTION)) == {
        "b.py": {"failed": {"b.py": {"cause": "cause not known", "error": "ImportError: no ray"}}}
    }


def test_the_page_keeps_what_is_written_by_hand() -> None:
    written = page(f"above\n{BEGIN}\nold\n{END}\nbelow\n", {"some": {"a.py": {"passed": {"test_x": 1}}}})
    assert written.startswith(f"above\n{BEGIN}\n\n| group |")
    assert written.endswith(f"\n{END}\nbelow\n")
    assert "old" not in written


def test_a_page_without_a_place_for_results_is_refused() -> None:
    with pytest.raises(ValueError, match="once each; restore them"):
        page("nothing", {})
