"""What only a running process can tell: devices, runtime library, components, vLLM's view. Asked of a child process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from vllm_ascend.doctor.report import Finding, Status
from vllm_ascend.doctor.runtime import runtime_finding

TIMEOUT_SECONDS = 180
STAGES = ("torch", "device", "components", "vllm")


def run_probe(timeout: float = TIMEOUT_SECONDS) -> tuple[dict[str, Any], str | None]:
    """Run the stages in a child.

    Returns:
        the answers by stage, and why it ended early, or None.
    """
    command = [sys.executable, "-m", "vllm_ascend.doctor.probe_child"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return {}, f"no answer within {timeout:.0f} s"
    answers: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        if line.startswith('{"stage":'):
            answer = json.loads(line)
            answers[answer["stage"]] = answer["answer"]
    if done.returncode == 0:
        return answers, None
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
    last = [it.strip() for it in done.stderr.splitlines() if it.strip()][-3:]
    return answers, f"{how}: {' | '.join(last)}"


def probe_runtime() -> list[Finding]:
    """The findings of the child process."""
    answers, ended = run_probe()
    return list(_findings(answers, ended))


def _findings(answers: dict[str, Any], ended: str | None) -> Iterator[Finding]:
    if "torch" in answers:
        yield runtime_finding(answers["torch"]["runtime_library"])
    if (device := answers.get("device")) is not None:
        yield _device(device)
    if (components := answers.get("components")) is not None:
        for it in components["loaded"]:
            claims = ", ".join(it["claims"]) or "claims nothing"
            yield Finding(f"component {it['name']}", Status.OK, f"{it['distribution']} {it['version']}: {claims}")
        for problem in components["problems"]:
            yield Finding("components", Status.PROBLEM, problem["why"], problem["who"], problem["mend"])
    if (vllm := answers.get("vllm")) is not None:
        yield _platform(vllm)
        triton = "active" if vllm["has_triton"] else "not active, vLLM takes its own PyTorch code instead"
        yield Finding("vLLM's view of Triton", Status.OK, triton)
    if ended is not None:
        missing = next((it for it in STAGES if it not in answers), STAGES[-1])
        detail = f"importing and asking {missing!r} ended the examining process"
        mend = "mend the problems above first; else run `python -m vllm_ascend.doctor.probe_child` to see all of it"
        yield Finding("runtime", Status.PROBLEM, ended, detail, mend)


def _device(device: dict[str, Any]) -> Finding:
    if not device["count"]:
        mend = "check the driver (`npu-smi info`) and ASCEND_RT_VISIBLE_DEVICES"
        return Finding("NPU", Status.PROBLEM, "no device is visible", "vLLM needs one", mend)
    if device["problem"]:
        return Finding("NPU", Status.PROBLEM, device["chip"], device["problem"], "see the README, 'SoC families'")
    found = f"{device['count']} of {device['chip']} ({device['family']}), {device['memory_gib']:.1f} GiB each"
    return Finding("NPU", Status.OK, found)


def _platform(vllm: dict[str, Any]) -> Finding:
    if vllm["platform"] == "vllm_ascend.platform.platform.AscendPlatform":
        return Finding("vLLM's platform", Status.OK, vllm["platform"])
    detail = "vLLM did not choose this platform"
    return Finding(
        "vLLM's platform", Status.PROBLEM, vllm["platform"], detail, "look at VLLM_PLUGINS and other platforms"
    )
