"""Folders that are made once and are either absent or whole."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs


def default_cache_root() -> Path:
    """The user's cache directory for this project (`$XDG_CACHE_HOME/vllm-ascend`, `~/.cache/vllm-ascend` on Linux)."""
    return platformdirs.user_cache_path("vllm-ascend", appauthor=False)


def file_digest(path: Path) -> str:
    """SHA-256 of the file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def make_once(folder: Path, fill: Callable[[Path], None]) -> Path:
    """`folder`, made by `fill(empty_folder)` if it does not exist yet.

    The content is written beside `folder` and renamed into place, so an interrupted run leaves nothing that a later one
    would take for complete; when two processes make it at once, the first wins and the other's copy is dropped.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        fill(partial)
        partial.chmod(0o755)  # mkdtemp makes it private; the cache may be shared read-only
        partial.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder
