"""Whose files the folder ``triton`` holds. The distributions triton and triton-ascend both write it."""

from __future__ import annotations

import base64
import hashlib
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from importlib.util import find_spec
from pathlib import Path

from vllm_ascend.doctor.report import Finding, Status

SUBJECT = "triton"
MEND = "`pip uninstall -y triton triton-ascend`, then `pip install triton-ascend` last, so that its files stay"


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _differs(file: PackagePath) -> bool:
    """Whether a file on disk is not the one that RECORD lists."""
    path = Path(str(file.locate()))
    if not path.is_file():
        return True
    if file.size is not None and path.stat().st_size != file.size:
        return True
    if file.hash is None or file.suffix != ".py":
        return False  # libraries of hundreds of megabytes are told apart by their size
    digest = hashlib.new(file.hash.mode, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value


def foreign_files(dist: Distribution) -> list[str]:
    """Files of the folder ``triton`` that the distribution recorded and that are missing or somebody else's."""
    files = dist.files or []
    return [str(it) for it in files if it.parts[0] == "triton" and "__pycache__" not in it.parts and _differs(it)]


def triton_owner() -> list[Finding]:
    """Compare the files of ``triton/`` with what triton-ascend recorded."""
    ascend, stock = _installed("triton-ascend"), _installed("triton")
    spec = find_spec("triton")
    if ascend is None and stock is None and spec is None:
        note = "no Triton kernel can be compiled; the reference implementations run instead"
        return [Finding(SUBJECT, Status.NOTE, "not installed", note)]
    if ascend is None:
        who = f"triton {stock.version}" if stock is not None else "an unknown distribution"
        detail = "this Triton has no backend for Ascend"
        return [Finding(SUBJECT, Status.PROBLEM, f"belongs to {who}", detail, MEND)]
    foreign = foreign_files(ascend)
    if foreign:
        who = f" and triton {stock.version} is installed too" if stock is not None else ""
        shown = ", ".join(foreign[:3]) + (" …" if len(foreign) > 3 else "")
        found = f"{len(foreign)} files are not those of triton-ascend {ascend.version}{who}: {shown}"
        return [Finding(SUBJECT, Status.PROBLEM, found, "both distributions write the folder triton/", MEND)]
    if stock is not None:
        found = f"belongs to triton-ascend {ascend.version}; triton {stock.version} is installed too"
        detail = "uninstalling or upgrading stock triton would take or overwrite triton-ascend's files"
        return [Finding(SUBJECT, Status.PROBLEM, found, detail, MEND)]
    return [Finding(SUBJECT, Status.OK, f"belongs to triton-ascend {ascend.version}")]
