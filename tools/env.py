"""Make the environment .venv from the committed locks, or bring it up to date.

    python3 tools/env.py            make it; takes a second when nothing changed
    python3 tools/env.py --check    only say whether it is up to date and sound

Needs CPython 3.11, a C++ compiler and a package registry that pip can reach; nothing else, no uv. Everything is
installed with its hash verified: uv from locks/bootstrap.txt, torch from locks/torch-cpu.txt, the rest from uv.lock.
"""

import ast
import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import installed

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
STAMP = VENV / "made-from"
SITE = VENV / "lib" / "python3.11" / "site-packages"
BOOTSTRAP = ROOT / "locks" / "bootstrap.txt"
TORCH = ROOT / "locks" / "torch-cpu.txt"
MEMBERS = sorted(
    path.parent
    for pattern in ("packages/*", "integration", "integration/sim")
    for path in ROOT.glob(f"{pattern}/pyproject.toml")
)

# Made by the venv module and by the first steps below, named by no lock.
TOOLS = {"pip", "setuptools", "uv", "torch"}

NO_TORCH = """\
No CPU build of torch could be installed (details above).

torch_npu works with the CPU build alone, and {list} accepts these wheels only:
{wheels}
Put such a wheel into a folder and name that folder to pip, then run the command again:

    export PIP_FIND_LINKS=/folder/with/the/wheel
"""


def fail(message: str) -> None:
    """End the program with `message`."""
    sys.exit(f"error: {message}")


def say(message: str) -> None:
    """Print one line of progress."""
    print(f"[env] {message}", flush=True)


@functools.cache
def environment() -> dict[str, str]:
    """Return the environment for pip and uv.

    Variables that would point them at another environment are left out. uv reads no pip configuration, so the index
    and certificate that pip is set to use are handed to it, unless uv has its own. torch_npu is not loaded with
    torch while its libraries are not there yet.
    """
    left_out = {"PYTHONHOME", "PYTHONPATH", "UV_FIND_LINKS", "UV_PROJECT_ENVIRONMENT", "UV_PYTHON", "VIRTUAL_ENV"}
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    variables |= {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    # vLLM without compiled code; its version would otherwise be 0.23.0+empty, which no index and no lock names.
    variables |= {"VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": "0.23.0"}
    settings = subprocess.run(
        [PYTHON, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True, env=variables
    ).stdout
    # Later lines override earlier ones in pip only by level; the environment is the strongest.
    values: dict[str, str] = {}
    for level in ("global", "install", ":env:"):
        for key, value in re.findall(rf"^{level}\.([a-z-]+)=(.+)$", settings, re.MULTILINE):
            values[key] = str(ast.literal_eval(value))
    if "index-url" in values:
        variables.setdefault("UV_DEFAULT_INDEX", values["index-url"])
    if "cert" in values:
        variables.setdefault("SSL_CERT_FILE", values["cert"])
    return variables


def fingerprint() -> str:
    """Return a digest of everything that decides what is installed."""
    digest = hashlib.sha256(sys.version.encode())
    tools = Path(__file__).parent
    for path in [
        ROOT / "pyproject.toml",
        ROOT / "uv.lock",
        BOOTSTRAP,
        TORCH,
        tools / "env.py",
        *(member / "pyproject.toml" for member in MEMBERS),
    ]:
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def up_to_date() -> bool:
    """Return whether .venv was made completely from the files that are there now, in this place."""
    return STAMP.is_file() and STAMP.read_text() == f"{ROOT}\n{fingerprint()}\n"


@contextmanager
def alone() -> Iterator[None]:
    """Let one process at a time change .venv; a second one waits."""
    with (ROOT / "tools" / "env.py").open() as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run(*command: object, stdin: str | None = None, quiet: bool = False) -> bool:
    """Run a command in the environment of `environment` and return whether it succeeded.

    The folder is the root of the file system: in the workspace `uv pip` would apply the constraints of pyproject.toml,
    and refuse them for having no hashes.
    """
    output = subprocess.DEVNULL if quiet else None
    words = [str(word) for word in command]
    return not subprocess.run(
        words, input=stdin, text=True, env=environment(), cwd="/", stdout=output, check=False
    ).returncode


def make_venv() -> None:
    """Make an empty .venv with uv in it, unless one is there that was made with this Python, in this place."""
    made_by = VENV / "pyvenv.cfg"
    same = (
        PYTHON.exists()
        and made_by.is_file()
        and str(VENV) in made_by.read_text()  # an environment does not work in another place than its own
        and run(PYTHON, "-c", f"import sys; sys.exit(sys.version != {sys.version!r})")
    )
    if not same:
        say(f"making {VENV.name} with Python {sys.version.split()[0]}")
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    if not run(PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "-r", BOOTSTRAP):
        fail(f"pip could not install uv from {BOOTSTRAP.relative_to(ROOT)}: is a package registry configured for pip?")


def remove_foreign() -> None:
    """Say what in .venv would break a process that imports it, and remove it; the next steps install the right one."""
    for problem in installed.problems(SITE):
        say(f"found: {problem}")
    present = installed.distributions(SITE)
    names = ["torch"] if installed.cuda_of_torch(SITE) else []
    overwritten = "triton-ascend" in present and installed.changed_files(SITE, "triton-ascend")
    if "triton" in present or overwritten:
        names += [name for name in ("triton", "triton-ascend") if name in present]
    if names:
        run(UV, "pip", "uninstall", "--quiet", "--python", PYTHON, *names)
    if overwritten:
        shutil.rmtree(SITE / "triton", ignore_errors=True)


def install_torch() -> None:
    """Install the CPU build of torch from its list of hashes, through pip's find-links or else uv's backend option."""
    pin = next(line for line in TORCH.read_text().splitlines() if line.startswith("torch=="))
    version = pin.split()[0].removeprefix("torch==")
    if installed.distributions(SITE).get("torch") == version:
        return
    say(f"installing torch {version}")
    options = ("--quiet", "--require-hashes", "--no-deps", "-r", TORCH)
    if run(PYTHON, "-m", "pip", "install", "--no-compile", *options):
        return
    say("pip finds no such wheel; asking uv for the CPU build")
    if not run(UV, "pip", "install", "--python", PYTHON, "--torch-backend=cpu", *options):
        fail(
            NO_TORCH.format(
                list=TORCH.relative_to(ROOT), wheels=re.sub(r"^#.*\n", "", TORCH.read_text(), flags=re.MULTILINE)
            )
        )


def install_locked() -> None:
    """Install what uv.lock names: first all but vLLM, then vLLM's source distribution, whose build imports the rest."""
    export = subprocess.run(
        [UV, "export", "--quiet", "--frozen", "--all-packages", "--no-emit-workspace", "--no-annotate", "--no-header"],
        check=True, capture_output=True, text=True, env=environment(), cwd=ROOT,
    ).stdout  # fmt: skip
    entries = re.split(r"\n(?=\S)", export.strip())
    vllm = [entry for entry in entries if entry.startswith("vllm==")]
    rest = [entry for entry in entries if not entry.startswith("vllm==")]
    wanted = {re.split(r"[=\[ ;]", entry)[0] for entry in entries}
    members = {tomllib.loads((member / "pyproject.toml").read_text())["project"]["name"] for member in MEMBERS}
    if extra := sorted(set(installed.distributions(SITE)) - wanted - members - TOOLS):
        say(f"removing what the lock does not name: {', '.join(extra)}")
        run(UV, "pip", "uninstall", "--quiet", "--python", PYTHON, *extra)
    # A person sees the downloads' progress; a log is spared two hundred lines.
    quiet = () if sys.stderr.isatty() else ("--quiet",)
    install = (UV, "pip", "install", *quiet, "--python", PYTHON, "--no-deps", "--no-build-isolation")
    say(f"installing {len(rest)} locked distributions")
    if not run(*install, "--require-hashes", "-r", "-", stdin="\n".join(rest)):
        fail("uv could not install what uv.lock names; the lines above say what is missing or has another hash")
    say("building vLLM from its source distribution, with no device code")
    if not run(*install, "--require-hashes", "--no-binary", "vllm", "-r", "-", stdin="\n".join(vllm)):
        fail("vLLM could not be built")
    say(f"installing the {len(MEMBERS)} members of the workspace, editable")
    if not run(*install, *(word for member in MEMBERS for word in ("--editable", member))):
        fail("the members of the workspace could not be installed")


def compile_bytecode() -> None:
    """Compile what is installed once, rather than in every process where Python may not write bytecode.

    With PYTHONDONTWRITEBYTECODE set, as in many containers, `from vllm import LLM` takes twice as long otherwise. Left
    out are tests, templates that are no Python, and transformers' models, of which a process imports a few.
    """
    say("compiling to bytecode")
    left_out = r"/(tests|testing|templates)/|/transformers/models/"
    if not run(PYTHON, "-m", "compileall", "-q", "-j", "0", "-x", left_out, SITE):
        fail("some installed module is no valid Python; the lines above name it")


def build_simulation() -> None:
    """Compile the simulated Ascend runtime into the user's cache; it returns at once when nothing changed."""
    if not run(PYTHON, "-m", "ascend_sim", "build"):
        fail("the simulated NPU could not be built; a C++ compiler is needed")


def make() -> None:
    """Make .venv, or bring it up to date."""
    started = time.monotonic()
    if not up_to_date() or installed.problems(SITE):
        STAMP.unlink(missing_ok=True)
        make_venv()
        remove_foreign()
        install_torch()
        install_locked()
        if found := installed.problems(SITE):
            fail("\n".join(["the environment is not sound:", *found]))
        compile_bytecode()
        STAMP.write_text(f"{ROOT}\n{fingerprint()}\n")
    build_simulation()
    say(f"{VENV.name} is ready ({time.monotonic() - started:.0f} s)")


def check() -> None:
    """Exit with a message unless .venv is up to date and sound."""
    found = installed.problems(SITE)
    if not up_to_date():
        found.append("it was not made from the locks as they are now: run `make env`.")
    if found:
        fail("\n".join([f"{VENV.name}:", *found]))


def main(arguments: list[str]) -> None:
    """Run the command named on the command line."""
    if sys.version_info[:2] != (3, 11) or sys.platform != "linux":
        fail(
            f"CPython 3.11 on Linux is needed, this is {sys.version.split()[0]} on {sys.platform}; "
            "name another interpreter with `make PYTHON=python3.11 …`"
        )
    match arguments:
        case []:
            with alone():
                make()
        case ["--check"]:
            check()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
