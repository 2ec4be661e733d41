"""Run the tests of the operators with stock Triton, in an environment of their own: .venv-stock.

    tools/stock_triton.py [PYTEST ARGUMENTS]

triton-ascend and triton write the same folder, so the two cannot share an environment. The kernels have to mean the
same in both; this runs their sources in stock Triton's interpreter. Needs what tools/env.py needs.
"""

import hashlib
import os
import subprocess
import sys

from check import ENVIRONMENT, PARALLEL
from env import ROOT, TORCH, environment, run, say

VENV = ROOT / ".venv-stock"
PYTHON = VENV / "bin" / "python"
LOCK = ROOT / "locks" / "stock-triton.txt"
STAMP = VENV / "made-from"
PACKAGE = ROOT / "packages" / "ascend-kernels"


def make() -> None:
    """Make the environment from its two lists of hashes, unless it was made from them already."""
    fingerprint = hashlib.sha256(sys.version.encode() + TORCH.read_bytes() + LOCK.read_bytes()).hexdigest()
    if STAMP.is_file() and STAMP.read_text() == fingerprint:
        return
    say(f"making {VENV.name}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    for requirements in (LOCK, TORCH):
        options = ("--quiet", "--no-compile", "--require-hashes", "--no-deps", "-r", requirements)
        if not run(PYTHON, "-m", "pip", "install", *options):
            sys.exit(f"error: pip could not install what {requirements.relative_to(ROOT)} names")
    STAMP.write_text(fingerprint)


def main(arguments: list[str]) -> None:
    """Make the environment and run the tests."""
    make()
    words = [str(PYTHON), "-m", "pytest", *(arguments or [*PARALLEL, str(PACKAGE / "tests")])]
    variables = environment() | ENVIRONMENT | {"PYTHONPATH": str(PACKAGE / "src"), "TRITON_INTERPRET": "1"}
    sys.exit(subprocess.run(words, cwd=ROOT, env=os.environ | variables, check=False).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
