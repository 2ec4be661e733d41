"""Whether the loaded Ascend runtime is CANN's. Recognised by where it lies, not by who else might provide it."""

from __future__ import annotations

import os
from pathlib import Path

from vllm_ascend.doctor.report import Finding, Status

LIBRARY = "libascendcl.so"
_INSTALLED_BY_CANN = (
    "ascend_toolkit_install.info",
    "ascend_nnrt_install.info",
    "ascend_nnae_install.info",
    "version.cfg",
)


def mapped_library() -> str | None:
    """The file of the Ascend runtime library that is mapped into this process, or None (Linux)."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.partition("/")
        if path[1] and Path(path[2]).name.startswith("libascendcl"):
            return f"/{path[2]}"
    return None


def is_cann(library: Path, home: str | None) -> bool:
    """Whether a library lies in a CANN installation: under its home, or below one of the files that CANN leaves."""
    if home and library.resolve().is_relative_to(Path(home).resolve()):
        return True
    return any((parent / name).is_file() for parent in list(library.parents)[:5] for name in _INSTALLED_BY_CANN)


def runtime_finding(library: str | None) -> Finding:
    """CANN, or something in its place."""
    if library is None:
        return Finding(
            "Ascend runtime",
            Status.PROBLEM,
            f"no {LIBRARY} is loaded",
            "torch_npu runs on CANN's runtime",
            "install CANN and source its set_env.sh, or `pip install 'vllm-ascend[sim]'` to simulate an NPU",
        )
    if is_cann(Path(library), os.environ.get("ASCEND_HOME_PATH")):
        return Finding("Ascend runtime", Status.OK, f"CANN: {library}")
    detail = "not a CANN installation: a simulated NPU. Results and speed are not those of Ascend hardware"
    return Finding("Ascend runtime", Status.NOTE, library, detail)
