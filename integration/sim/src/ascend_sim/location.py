"""Where a build of the simulation lives.

Imported at every interpreter start: standard library only, and little of it.
"""
# ruff: noqa: PTH100, PTH110, PTH111, PTH118, PTH120, PTH123, PTH208
# os.path rather than pathlib, whose import would take longer than all that happens here.

import os
import sys
from _blake2 import blake2b  # hashlib would load OpenSSL, which alone takes longer than everything here

PACKAGE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(PACKAGE, "csrc")
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
COMPLETE = "complete"  # written last by a build


def installed_versions(path: list[str] | None = None) -> dict[str, str]:
    """Versions of torch and torch_npu as their dist-info folders name them; missing ones are left out."""
    found: dict[str, str] = {}
    for folder in sys.path if path is None else path:
        if len(found) == 2:
            break
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith("torch") and name.endswith(".dist-info"):
                distribution, _, version = name[: -len(".dist-info")].partition("-")
                if distribution in ("torch", "torch_npu"):
                    found.setdefault(distribution, version)
    return found


def source_digest(sources: str = SOURCES, folders: tuple[str, ...] = ("", "dispatch", "references", "runtime")) -> str:
    """Digest of the C and C++ sources below a folder."""
    digest = blake2b(digest_size=8)
    for folder in folders:
        path = os.path.join(sources, folder)
        for name in sorted(os.listdir(path)):
            if name.endswith((".c", ".cpp", ".h", ".inc")):
                with open(os.path.join(path, name), "rb") as file:
                    digest.update(f"{folder}/{name}\0".encode() + file.read())
    return digest.hexdigest()


def cache_root() -> str:
    """Folder of all builds: `ASCEND_SIM_CACHE_DIR`, else the user's cache directory as platformdirs names it."""
    chosen = os.environ.get("ASCEND_SIM_CACHE_DIR")
    if chosen:
        return chosen
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "ascend-sim")


def build_directory(versions: dict[str, str], sources: str = SOURCES) -> str:
    """Folder of the build for these versions and sources."""
    return os.path.join(cache_root(), f"torch-{versions['torch']}-npu-{versions['torch_npu']}-{source_digest(sources)}")


def has_older_build(versions: dict[str, str]) -> bool:
    """Whether other sources have been built for these versions: someone edits the sources here."""
    prefix = f"torch-{versions['torch']}-npu-{versions['torch_npu']}-"
    try:
        names = os.listdir(cache_root())
    except OSError:
        return False
    return any(name.startswith(prefix) and is_complete(os.path.join(cache_root(), name)) for name in names)


def is_complete(directory: str) -> bool:
    """Whether a build has finished there."""
    return os.path.exists(os.path.join(directory, COMPLETE))


def real_cann() -> str | None:
    """Where a real CANN is, by the variables its setup script sets; None without one."""
    for variable in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        if os.environ.get(variable):
            return f"{variable}={os.environ[variable]}"
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and os.path.exists(os.path.join(folder, "libascendcl.so")):
            return os.path.join(folder, "libascendcl.so")
    return None
