"""What must hold of an answer for the demo to have succeeded."""

from ascend_integration.demo.chat import ChatAnswer
from ascend_integration.demo.device import ServedDevice


def problems(answer: ChatAnswer, device: ServedDevice, expected: str | None) -> list[str]:
    """Everything that is wrong, in words; empty if the device is an NPU and the answer has `expected` in it."""
    found = []
    if not device.is_npu:
        found.append(f"the weights are on {device.weights_on}, not on an NPU")
    if not answer.text.strip():
        found.append("the answer is empty")
    elif expected is not None and expected not in answer.text:
        found.append(f"the answer {answer.text!r} does not contain {expected!r}")
    return found
