"""One specialisation of a kernel, from its Triton source to memory-planned HIVM."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ascend_kernels.lowering.signature import Signature

ARCHITECTURES = {"ascend910b1": "Ascend910B1", "ascend910_9392": "Ascend910_9392"}
"""The compiler's name of each target."""

# What triton-ascend itself passes for these processors with its default options.
OPTIONS = (
    "--enable-auto-bind-sub-block=True",
    "--enable-hfusion-compile=true",
    "--enable-hivm-compile=true",
    "--enable-triton-kernel-compile=true",
)
SECONDS = 300
"""Longest that the compiler may take for one kernel."""


class LoweringError(Exception):
    """A kernel that does not lower; the message is the compiler's."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel in memory-planned HIVM.

    Attributes:
        hivm: the module's text.
        core: ``vector``, ``cube`` or ``mix`` (vector and cube cores work together).
        unified_buffer: bytes of the unified buffer up to the highest address that a tile uses.
        retries: what the compiler gave up to make the tiles fit (code motion, double buffering); empty if nothing.
    """

    hivm: str
    core: str
    unified_buffer: int
    retries: str


def compiler_path() -> Path:
    """The AscendNPU IR compiler.

    Raises:
        ModuleNotFoundError: the distribution ascendnpu-ir is not installed.
    """
    spec = importlib.util.find_spec("ascendnpuir")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("lowering needs the compiler of the distribution ascendnpu-ir; install it")
    return Path(spec.origin).parent / "bin" / "bishengir-compile"


def to_linalg(kernel: Any, signature: Signature) -> str:
    """The kernel in the linalg dialect, as triton-ascend hands it to the compiler; the same for every target.

    Raises:
        LoweringError: the kernel uses what triton-ascend does not know.
    """
    from triton._C.libtriton import ir
    from triton.backends import backends
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.errors import CompilationError

    target = GPUTarget("npu", "Ascend910B1", 0)
    backend = backends["ascend"].compiler(target)
    options = backend.parse_options({})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options)
    metadata = {"hash": kernel.__name__, "target": target, **options.__dict__}
    source = ASTSource(kernel, signature=signature.types, constants=signature.constants)
    try:
        module = source.make_ir(options, backend.get_codegen_implementation(), backend.get_module_map(), context)
        return stages["ttadapter"](stages["ttir"](module, metadata), metadata)
    except CompilationError as error:
        raise LoweringError(f"Triton: {_last_line(str(error))}") from error
    except subprocess.CalledProcessError as error:
        raise LoweringError(f"triton-adapter-opt: {_first_error(error.stderr.decode(errors='replace'))}") from error


def to_hivm(linalg: str, target: str, multibuffer: bool = True) -> Lowered:
    """The kernel in HIVM with every tile at its address.

    Without CANN the compiler stops after it has written the module, because the assembler is missing; the module's
    presence is the success.

    Args:
        linalg: from :func:`to_linalg`.
        target: a key of :data:`ARCHITECTURES`.
        multibuffer: as the launch says.

    Raises:
        LoweringError: tiles that do not fit, or an operation that the compiler refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, kept = Path(folder) / "kernel.mlir", Path(folder) / "kept"
        source.write_text(re.sub(r', mix_mode = "[^"]*"', "", linalg))
        command = [str(compiler_path()), str(source), f"--target={ARCHITECTURES[target]}", *OPTIONS]
        command += [
            f"--enable-auto-multi-buffer={multibuffer}",
            f"--save-temps={kept}",
            "-o",
            str(Path(folder) / "kernel"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        output = done.stdout + done.stderr
        written = kept / "module.hivm.opt.mlir"
        if not written.is_file():
            raise LoweringError(f"bishengir-compile ({done.returncode}): {_first_error(output)}")
        hivm = written.read_text()
    retries = re.findall(r"automatically set (\S+) to false and retrying", output)
    return Lowered(hivm, _core(hivm), _highest_address(hivm), " and ".join(f"no {retry}" for retry in retries))


def _core(hivm: str) -> str:
    found = re.search(r"hivm\.module_core_type<(\w+)>", hivm)
    return {"AIV": "vector", "AIC": "cube", "MIX": "mix"}[found[1]] if found else "unknown"


_ELEMENT_BYTES = {"f32": 4, "i32": 4, "bf16": 2, "f16": 2, "i16": 2, "i8": 1, "i1": 1, "i64": 8, "f64": 8}


def _highest_address(hivm: str) -> int:
    """The end of the tile that lies highest in the unified buffer."""
    highest = 0
    constants: dict[str, int] = {}
    for line in hivm.splitlines():
        if "func.func @" in line:
            constants = {}
        if found := re.search(r"(%\w+) = arith\.constant (\d+) : i64", line):
            constants[found[1]] = int(found[2])
        elif found := re.search(r"hivm\.hir\.pointer_cast\(([^)]*)\).* : memref<((?:\d+x)*)(\w+), .*<ub>", line):
            size = _ELEMENT_BYTES[found[3]]
            for extent in filter(None, found[2].split("x")):
                size *= int(extent)
            for address in re.findall(r"%\w+", found[1]):
                highest = max(highest, constants[address] + size)
    return highest


def _first_error(output: str) -> str:
    errors = [
        line for line in re.findall(r"error: (.*)", output) if not line.startswith(("External hivmc", "Failed to"))
    ]
    return errors[0][:200] if errors else _last_line(output)[:200]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
