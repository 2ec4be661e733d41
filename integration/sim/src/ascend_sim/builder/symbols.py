"""Which CANN symbols torch_npu needs, read from its shared libraries with `nm`."""

import subprocess
from pathlib import Path

# Libraries every process has: what they define is not CANN's.
SYSTEM_LIBRARIES = (
    "libstdc++.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libpthread.so.0",
    "libc.so.6",
    "libdl.so.2",
    "librt.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
)
_NOT_CANN = ("Py", "_Py", "_ITM", "__gmon")


def _symbols(library: Path, which: str) -> dict[str, str]:
    """Symbol name to nm's type letter."""
    output = subprocess.run(["nm", "-D", which, str(library)], check=True, capture_output=True, text=True).stdout
    symbols = {}
    for line in output.splitlines():
        kind, name = line.split()[-2:]
        symbols[name.split("@")[0]] = kind
    return symbols


def _system_libraries(compiler: str) -> list[Path]:
    paths = []
    for name in SYSTEM_LIBRARIES:
        answer = subprocess.run([compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True)
        path = Path(answer.stdout.strip())
        if path.is_absolute():  # the compiler echoes the bare name of a library it does not know
            paths.append(path)
    return paths


def undefined_cann_symbols(torch_npu: Path, torch: Path, compiler: str) -> list[str]:
    """Strong undefined symbols of torch_npu that neither torch, itself nor the system defines."""
    modules = [*torch_npu.glob("_C*.so"), *(torch_npu / "lib").glob("*.so")]
    needed: set[str] = set()
    defined: set[str] = set()
    for module in modules:
        needed.update(name for name, kind in _symbols(module, "--undefined-only").items() if kind == "U")
    for library in [*modules, *(torch / "lib").glob("*.so*"), *_system_libraries(compiler)]:
        defined.update(_symbols(library, "--defined-only"))
    return sorted(name for name in needed - defined if not name.startswith(_NOT_CANN))


def defined_symbols(library: Path) -> set[str]:
    """Symbols a library defines."""
    return set(_symbols(library, "--defined-only"))


def stub_source(symbols: list[str]) -> str:
    """C source of stubs: functions return an error that names them; C++ type data is zero."""
    lines = ["/* Generated: CANN symbols of torch_npu that the simulated runtime does not implement. */"]
    lines.append("long sim_unimplemented(const char *symbol);")
    for symbol in symbols:
        if symbol.startswith(("_ZTV", "_ZTI", "_ZTS")):
            lines.append(f"char {symbol}[256];")
        else:
            lines.append(f'long {symbol}(void) {{ return sim_unimplemented("{symbol}"); }}')
    return "\n".join(lines) + "\n"
