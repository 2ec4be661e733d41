"""Look into a site-packages folder without importing anything from it.

Two mistakes end a process before any message can be printed: the CUDA build of torch under torch_npu, and stock
triton written over triton-ascend, which shares the folder ``triton/``. Both show in the installed files.
"""

import base64
import csv
import hashlib
import re
from email.parser import HeaderParser
from pathlib import Path


def distributions(site: Path) -> dict[str, str]:
    """Return the version of every installed distribution by its normalised name."""
    found = {}
    for metadata in site.glob("*.dist-info/METADATA"):
        headers = HeaderParser().parsestr(metadata.read_text(encoding="utf-8", errors="replace"))
        found[re.sub(r"[-_.]+", "-", headers["Name"]).lower()] = headers["Version"]
    return found


def cuda_of_torch(site: Path) -> str | None:
    """Return the CUDA version that the installed torch was built for; None for a CPU build or no torch."""
    version = site / "torch" / "version.py"
    if not version.is_file():
        return None
    match = re.search(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", version.read_text(), re.MULTILINE)
    return match[1] if match else None


def changed_files(site: Path, name: str, suffix: str = ".py") -> list[str]:
    """Return the files of distribution `name` with `suffix` that are missing or not what its RECORD says.

    Raises FileNotFoundError if the distribution is not installed.
    """
    folders = list(site.glob(f"{name.replace('-', '_')}-*.dist-info"))
    if not folders:
        raise FileNotFoundError(f"the distribution {name} is not installed in {site}")
    changed = []
    with (folders[0] / "RECORD").open(newline="") as record:
        for path, digest, _size in csv.reader(record):
            if not digest or not path.endswith(suffix):
                continue
            algorithm, _, expected = digest.partition("=")
            file = site / path
            if not file.is_file():
                changed.append(path)
                continue
            actual = base64.urlsafe_b64encode(hashlib.new(algorithm, file.read_bytes()).digest()).rstrip(b"=").decode()
            if actual != expected:
                changed.append(path)
    return changed


def problems(site: Path) -> list[str]:
    """Return what in `site` would end or mislead a process that imports it, each with its remedy."""
    installed = distributions(site)
    found = []
    if cuda := cuda_of_torch(site):
        found.append(
            f"torch {installed.get('torch', '')} is built for CUDA {cuda}: with it, torch_npu ends the process at "
            "import. The CPU build is needed (locks/torch-cpu.txt)."
        )
    if "triton" in installed:
        found.append(
            f"the distribution triton {installed['triton']} is installed: it writes the folder triton/, which "
            "triton-ascend owns. Uninstall both, then install triton-ascend."
        )
    if "triton-ascend" in installed and (changed := changed_files(site, "triton-ascend")):
        found.append(
            f"{len(changed)} files of triton-ascend are not its own, {changed[0]} for one: another distribution wrote "
            "the folder triton/. Reinstall triton-ascend."
        )
    return found
