"""``vllm-ascend doctor``: what is installed, what does not fit together, and how to mend it.

What can be read from metadata and files is read without importing anything; the rest is asked of a child process,
because importing a torch that does not fit torch_npu ends the process.
"""

from __future__ import annotations

import sys

from vllm_ascend.doctor.owner import our_distribution, platform_plugins
from vllm_ascend.doctor.probe import probe_runtime
from vllm_ascend.doctor.report import Finding, Report, Status
from vllm_ascend.doctor.torch_build import torch_build
from vllm_ascend.doctor.triton_owner import triton_owner
from vllm_ascend.doctor.versions import requirements, versions

__all__ = ["Finding", "Report", "Status", "examine"]


def examine() -> Report:
    """Examine the environment of this interpreter."""
    python = Finding("Python", Status.OK, f"{sys.version.split()[0]} ({sys.executable})")
    torch = torch_build()
    findings = [python, *our_distribution(), *platform_plugins(), *versions(), torch, *triton_owner(), *requirements()]
    if torch.status is Status.PROBLEM:
        findings.append(Finding("runtime", Status.NOTE, "not examined", "torch cannot be imported as it is"))
    else:
        findings.extend(probe_runtime())
    return Report(tuple(findings))
