"""Where a build of the simulation lives: a folder named by the versions of torch and torch_npu and the sources."""

import os
import sys
from hashlib import blake2b
from pathlib import Path

import platformdirs

SOURCES = Path(__file__).absolute().parent / "csrc"
TOOLS = Path(__file__).absolute().parent / "tools"  # programs that stand in for CANN's
RUNTIME = "libascend_sim_runtime.so"
DISPATCH = "libascend_sim_dispatch.so"
REFERENCES = "libascend_sim_references.so"
# The CANN libraries torch_npu links to or opens, by soname.
CANN_LIBRARIES = (
    "libascendcl.so",
    "libacl_op_compiler.so",
    "libacl_tdt_channel.so",
    "libatb.so",
    "libge_runner.so",
    "libgraph.so",
    "libhccl.so",
)
STUBS = "stubs.c"  # of the CANN functions that the runtime lacks
COMPLETE = "complete"  # written last by a build


def installed_versions() -> dict[str, str]:
    """Versions of torch and torch_npu as their dist-info folders name them; missing ones are left out.

    importlib.metadata would read their metadata as well, and this runs before every import of torch.
    """
    found: dict[str, str] = {}
    for folder in sys.path:
        for path in Path(folder).glob("torch*.dist-info"):
            distribution, _, version = path.name.removesuffix(".dist-info").partition("-")
            if distribution in ("torch", "torch_npu"):
                found.setdefault(distribution, version)
    return found


def source_digest(sources: Path = SOURCES, folders: tuple[str, ...] = ("", "dispatch", "references", "runtime")) -> str:
    """Digest of the C and C++ sources below a folder."""
    digest = blake2b(digest_size=8)
    for folder in folders:
        for path in sorted((sources / folder).iterdir()):
            if path.suffix in (".c", ".cpp", ".h"):
                digest.update(f"{folder}/{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def cache_root() -> Path:
    """Folder of all builds: `ASCEND_SIM_CACHE_DIR`, else the user's cache directory."""
    chosen = os.environ.get("ASCEND_SIM_CACHE_DIR")
    return Path(chosen) if chosen else platformdirs.user_cache_path("ascend-sim", appauthor=False)


def _prefix(versions: dict[str, str]) -> str:
    return f"torch-{versions['torch']}-npu-{versions['torch_npu']}-"


def build_directory(versions: dict[str, str], sources: Path = SOURCES) -> Path:
    """Folder of the build for these versions and sources."""
    return cache_root() / f"{_prefix(versions)}{source_digest(sources)}"


def complete_builds(versions: dict[str, str]) -> list[Path]:
    """Finished builds for these versions, of any sources."""
    return sorted(path.parent for path in cache_root().glob(f"{_prefix(versions)}*/{COMPLETE}"))


def is_complete(directory: Path) -> bool:
    """Whether a build has finished there."""
    return (directory / COMPLETE).exists()
