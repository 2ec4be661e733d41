"""Compile the simulation into the user's cache."""

import fcntl
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ascend_sim import location
from ascend_sim.builder import symbols

Report = Callable[[str], None]
Compile = Callable[[Path, Path, "Tools"], None]


class BuildError(RuntimeError):
    """The build cannot be made; the message says what is missing or what the compiler said."""


@dataclass(frozen=True)
class Tools:
    """Compilers, and the packages to compile for."""

    c: str
    cxx: str
    torch: Path
    torch_npu: Path


def _compiler(variable: str, *names: str) -> str:
    """Path of a compiler: the environment variable's, else the first of the names that exists."""
    chosen = os.environ.get(variable)
    for name in (chosen,) if chosen else names:
        path = shutil.which(name)
        if path:
            return path
    hint = "install a C and C++ compiler with binutils (Debian/Ubuntu: apt-get install g++)"
    if chosen:
        raise BuildError(f"{variable}={chosen} is not on PATH: correct it, or unset it and {hint}")
    raise BuildError(f"none of {', '.join(names)} is on PATH: {hint}, or name one in {variable}")


def _packages() -> tuple[dict[str, str], Path]:
    versions = location.installed_versions()
    missing = [name for name in ("torch", "torch_npu") if name not in versions]
    if missing:
        raise BuildError(
            f"not installed: {', '.join(missing)}; the simulation is built for an installed torch and torch_npu"
        )
    site = Path(sysconfig.get_paths()["platlib"])
    if not (site / "torch_npu" / "include" / "acl").is_dir():
        raise BuildError(f"no torch_npu with headers in {site}: install the torch_npu wheel into this environment")
    return versions, site


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise BuildError(f"the compiler failed: {' '.join(command)}\n{result.stderr.strip()}")


def _compile_runtime(target: Path, sources: Path, tools: Tools) -> None:
    """The runtime with stubs for what it lacks, and one empty library per CANN soname that leads to it."""
    shared = [tools.c, "-shared", "-fPIC", "-O2", "-std=gnu11", "-pthread"]
    runtime = target / location.RUNTIME
    command = [
        *shared,
        "-isystem",
        str(tools.torch_npu / "include"),
        "-o",
        str(runtime),
        f"-Wl,-soname,{location.RUNTIME}",
    ]
    command += sorted(str(path) for path in (sources / "runtime").glob("*.c"))
    _run(command)
    needed = set(symbols.undefined_cann_symbols(tools.torch_npu, tools.torch, tools.c))
    stubs = target / location.STUBS
    stubs.write_text(symbols.stub_source(sorted(needed - symbols.defined_symbols(runtime))))
    # Stubs have no prototypes, and some bear names the compiler knows as built-in functions.
    _run([*command, "-fno-builtin", "-w", str(stubs)])
    for name in location.CANN_LIBRARIES:
        options = ["-x", "c", os.devnull, f"-Wl,-soname,{name}", "-Wl,--no-as-needed", f"-L{target}"]
        _run([*shared, "-o", str(target / name), *options, "-l:" + location.RUNTIME, "-Wl,-rpath,$ORIGIN"])


def _compile_cxx(output: Path, folder: Path, tools: Tools, links: list[str]) -> None:
    """A folder's sources as one translation unit: torch's headers take longer to read than the code."""
    unit = output.with_suffix(".cpp")
    unit.write_text("".join(f'#include "{path}"\n' for path in sorted(folder.glob("*.cpp"))))
    includes = [tools.torch / "include", tools.torch / "include" / "torch" / "csrc" / "api" / "include"]
    includes.append(tools.torch_npu / "include")
    options = ["-shared", "-fPIC", "-O2", "-std=c++20", "-fvisibility=hidden", "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO"]
    torch = [f"-L{tools.torch / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch"]
    _run([tools.cxx, *options, *(f"-isystem{path}" for path in includes), "-o", str(output), str(unit), *torch, *links])


def _compile_dispatch(target: Path, sources: Path, tools: Tools) -> None:
    runtime = [f"-L{target}", "-l:" + location.RUNTIME, "-Wl,-rpath,$ORIGIN", "-Wl,--allow-shlib-undefined"]
    links = [f"-L{tools.torch_npu / 'lib'}", "-ltorch_npu", *runtime]
    _compile_cxx(target / location.DISPATCH, sources / "dispatch", tools, links)


def _compile_references(target: Path, sources: Path, tools: Tools) -> None:
    _compile_cxx(target / location.REFERENCES, sources / "references", tools, [])


# Parts of a build: what it makes, the folders of its sources, how. A part that another build for the same versions has
# made from equal sources is copied.
PARTS: tuple[tuple[str, tuple[str, ...], tuple[str, ...], Compile], ...] = (
    ("runtime", (location.RUNTIME, *location.CANN_LIBRARIES, location.STUBS), ("", "runtime"), _compile_runtime),
    ("operators", (location.DISPATCH,), ("", "dispatch"), _compile_dispatch),
    ("references", (location.REFERENCES,), ("references",), _compile_references),
)


def _make_parts(target: Path, sources: Path, siblings: list[Path], tools: Tools, report: Report) -> None:
    """Copy or compile the parts: first the runtime, to which the operators are linked, then the others side by side."""

    def make(part: str, products: tuple[str, ...], folders: tuple[str, ...], compile_part: Compile) -> None:
        mark = f"{part}-{location.source_digest(sources, folders)}"
        made = next((folder for folder in siblings if (folder / mark).exists()), None)
        if made:
            report(f"{part}: unchanged")
            for product in products:
                shutil.copy2(made / product, target / product)
        else:
            report(f"{part}: compiling")
            compile_part(target, sources, tools)
        (target / mark).touch()

    make(*PARTS[0])
    with ThreadPoolExecutor() as pool:
        for made in [pool.submit(make, *part) for part in PARTS[1:]]:
            made.result()
    (target / location.COMPLETE).touch()


def _replace(final: Path, target: Path) -> None:
    """Put a finished build in its place. Processes that have the old one mapped keep its files until they end."""
    retired = Path(tempfile.mkdtemp(prefix="retired.", dir=final.parent))
    if final.exists():
        final.rename(retired / "build")
    target.rename(final)
    shutil.rmtree(retired)


def build(force: bool = False, report: Report = lambda text: None) -> Path:
    """Build the simulation for the installed torch and torch_npu, unless that build exists.

    Args:
        force: compile everything, even what exists.
        report: called with a line per step.

    Returns:
        The folder of the build.

    Raises:
        BuildError: a package, a compiler or the permission to write is missing, or the compiler fails.
    """
    versions, site = _packages()
    root = location.cache_root()
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = (root / "lock").open("w")
    except OSError as error:
        raise BuildError(f"cannot write to {root} ({error}); set ASCEND_SIM_CACHE_DIR to another folder") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two builds at once: the second finds the first one's result
        final = location.build_directory(versions)
        if location.is_complete(final) and not force:
            report(f"up to date: {final}")
            return final
        tools = Tools(
            _compiler("CC", "gcc", "cc", "clang"),
            _compiler("CXX", "g++", "c++", "clang++"),
            site / "torch",
            site / "torch_npu",
        )
        _compiler("NM", "nm")
        target = Path(tempfile.mkdtemp(prefix="building.", dir=root))
        try:
            sources = target / "csrc"  # a copy, so that the digest and the compiler see the same even if a file changes
            shutil.copytree(location.SOURCES, sources)
            final = location.build_directory(versions, sources)
            siblings = [] if force else location.complete_builds(versions)
            _make_parts(target, sources, siblings, tools, report)
            _replace(final, target)
        finally:
            if target.exists():
                shutil.rmtree(target)
    report(f"built: {final}")
    return final
