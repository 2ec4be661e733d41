"""Count the lines of the plugin: ``vllm_ascend`` is to stay small enough to read."""

import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "packages" / "ascend-platform" / "src" / "vllm_ascend"

LIMIT = 6000
"""Most lines that the package may have, blank lines, comments and docstrings included."""


def lines(package: Path) -> dict[str, int]:
    """Return the number of lines of every Python file of `package` by its path in it."""
    return {str(path.relative_to(package)): path.read_bytes().count(b"\n") for path in sorted(package.rglob("*.py"))}


def main() -> None:
    """Print the lines per folder and in total; fail above the limit."""
    counts = lines(PACKAGE)
    folders: dict[str, int] = {}
    for path, count in counts.items():
        folder = path.split("/")[0] if "/" in path else "."
        folders[folder] = folders.get(folder, 0) + count
    total = sum(counts.values())
    print("  ".join(f"{folder} {count}" for folder, count in sorted(folders.items(), key=lambda item: -item[1])))
    print(f"vllm_ascend: {total} lines in {len(counts)} files (limit {LIMIT})")
    if total > LIMIT:
        sys.exit(f"vllm_ascend has {total - LIMIT} lines too many")


if __name__ == "__main__":
    main()
