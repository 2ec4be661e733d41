"""Keep the committed uv.lock free of registry hosts.

uv writes the URLs of the index it resolved from into uv.lock. The committed form names the reserved host
``index.invalid`` instead and keeps every hash, so that the lock says what is installed and not where it comes from.

    tools/lock.py filter    standard input in committed form, to standard output
    tools/lock.py update    resolve again (versions already locked stay where they can) and write the committed form
    tools/lock.py upgrade   the same, to the newest versions allowed
    tools/lock.py check     fail unless uv.lock is in committed form and agrees with every pyproject.toml
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "uv.lock"
UV = ROOT / ".venv" / "bin" / "uv"

INDEX = re.compile(r'(?<=\bregistry = ")(?:https?|file)://[^"]*(?=")')
FILE = re.compile(r'(?<=\burl = ")(?:https?|file)://[^"]*/(?=[^"/]+")')


def neutral(text: str) -> str:
    """Return the lock `text` with every index and file URL moved to the host ``index.invalid``."""
    return FILE.sub("https://index.invalid/", INDEX.sub("https://index.invalid/simple", text))


def uv_environment() -> dict[str, str]:
    """Return the environment for resolving: a find-links folder must not decide which files are locked."""
    return {name: value for name, value in os.environ.items() if name not in {"UV_FIND_LINKS", "UV_PYTHON"}}


def resolve(*options: str) -> None:
    """Resolve with the configured index and write the committed form."""
    subprocess.run([UV, "lock", "--project", ROOT, *options], check=True, env=uv_environment())
    LOCK.write_text(neutral(LOCK.read_text()))


def check() -> None:
    """Exit with a message unless the lock is neutral and current."""
    text = LOCK.read_text()
    if text != neutral(text):
        sys.exit("uv.lock names a registry host: run `.venv/bin/python tools/lock.py update` and commit the result")
    result = subprocess.run([UV, "lock", "--check", "--project", ROOT], env=uv_environment(), check=False)
    if result.returncode:
        sys.exit(
            "uv.lock does not agree with the pyproject files: run `.venv/bin/python tools/lock.py update` and commit it"
        )


def main(arguments: list[str]) -> None:
    """Run the command named on the command line."""
    match arguments:
        case ["filter"]:
            sys.stdout.write(neutral(sys.stdin.read()))
        case ["update"]:
            resolve()
        case ["upgrade"]:
            resolve("--upgrade")
        case ["check"]:
            check()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
