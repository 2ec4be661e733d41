"""vLLM's source distribution and what its tests import beside vLLM, fetched by pip into the user's cache."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from ascend_integration.checkpoints.cache import default_cache_root, file_digest, make_once
from ascend_integration.upstream.selection import Adaptation

VERSION = "0.23.0"
SHA256 = "760269db3d9611e12e524681df1bca0977d5d2f5fcb4481cc34d33efc4ae7ff5"
# Not `vllm`: Python would find it before the installed package.
UNPACKED = re.compile(r"vllm-[^/]+/(tests|examples|pyproject\.toml)(/|$)")
# Of the tests alone: neither vLLM nor we need them, so they are in no environment of ours.
TEST_REQUIREMENTS = ("tblib==3.2.2", "pytest-asyncio==1.5.0")


class FetchError(RuntimeError):
    """Something could not be fetched; the message has the end of what pip said."""


def _pip(*words: str) -> None:
    # The empty target builds nothing; without the override pip refuses the source as `0.23.0+empty`.
    environment = os.environ | {"VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": VERSION}
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise FetchError(f"`pip {' '.join(words)}` failed:\n{result.stderr.strip()[-2000:]}")


def unpack(archive: Path, folder: Path) -> None:
    """Write the tests, the examples that they read and pytest's settings into `folder`, without the leading folder."""
    with tarfile.open(archive) as source:
        for member in source:
            if UNPACKED.match(member.name):
                member.name = member.name.split("/", 1)[1]
                source.extract(member, folder, filter="data")


def fetch_tests(cache_root: Path | None = None) -> Path:
    """The folder with vLLM's `tests`; fetched on the first call.

    Raises:
        FetchError: pip found no such source, or it is another one than the digest names.
    """
    folder = (cache_root or default_cache_root()) / "upstream" / f"vllm-{VERSION}-{SHA256[:16]}"

    def fill(target: Path) -> None:
        with tempfile.TemporaryDirectory() as download:
            options = ("--no-deps", "--no-binary", "vllm", "--no-build-isolation", "--dest", download)
            _pip("download", *options, f"vllm=={VERSION}")
            (archive,) = Path(download).iterdir()
            if (digest := file_digest(archive)) != SHA256:
                raise FetchError(f"{archive.name} has the digest {digest}, not {SHA256}; another file was published")
            unpack(archive, target)

    return make_once(folder, fill)


def adapt(root: Path, adaptations: tuple[Adaptation, ...]) -> None:
    """Replace what the adaptations name in the files below `root`; `ValueError` where a file lacks it."""
    for adaptation in adaptations:
        for name in adaptation.files:
            path = root / "tests" / name
            text = path.read_text()
            if adaptation.old not in text:
                raise ValueError(f"{name} has no {adaptation.old!r}, which selection.toml replaces; mend the entry")
            path.write_text(text.replace(adaptation.old, adaptation.new))


def adapted_tests(adaptations: tuple[Adaptation, ...], cache_root: Path | None = None) -> Path:
    """The folder with vLLM's `tests` after the adaptations."""
    source = fetch_tests(cache_root)
    digest = hashlib.sha256(repr(adaptations).encode()).hexdigest()[:16]

    def fill(target: Path) -> None:
        shutil.copytree(source, target, dirs_exist_ok=True)
        adapt(target, adaptations)

    return make_once(source.parent / f"adapted-{digest}", fill)


def fetch_test_requirements(cache_root: Path | None = None) -> Path:
    """The folder with the packages that the tests import and no environment of ours has."""
    name = "-".join(TEST_REQUIREMENTS).replace("==", "-")
    folder = (cache_root or default_cache_root()) / "upstream" / f"packages-{name}"
    return make_once(folder, lambda target: _pip("install", "--no-deps", "--target", str(target), *TEST_REQUIREMENTS))
