"""The demo succeeds only with a full answer from an NPU."""

import pytest

from ascend_integration.demo.chat import ChatAnswer
from ascend_integration.demo.device import ServedDevice
from ascend_integration.demo.verdict import problems

NPU = ServedDevice("npu:0", "Ascend910B1")
PARIS = "The capital of France is Paris."


def answer(text: str) -> ChatAnswer:
    return ChatAnswer(text, completion_tokens=8, seconds_to_first_token=0.1, seconds_total=0.2)


def test_right_answer_on_an_npu():
    assert problems(answer(f"{PARIS} It lies on the Seine."), NPU, PARIS) == []


def test_any_answer_without_an_expectation():
    assert problems(answer("Forty-two."), NPU, None) == []


@pytest.mark.parametrize(
    ("text", "device", "expected", "message"),
    [
        ("The capital of France is Lyon.", NPU, PARIS, "does not contain 'The capital of France is Paris.'"),
        (" \n", NPU, None, "the answer is empty"),
        (PARIS, ServedDevice("cpu", "x"), PARIS, "the weights are on cpu, not on an NPU"),
        (PARIS, ServedDevice("cpu, npu:0", "x"), PARIS, "the weights are on cpu, npu:0, not on an NPU"),
    ],
    ids=["wrong", "empty", "cpu", "partly-cpu"],
)
def test_each_problem_is_named(text, device, expected, message):
    (problem,) = problems(answer(text), device, expected)
    assert message in problem
