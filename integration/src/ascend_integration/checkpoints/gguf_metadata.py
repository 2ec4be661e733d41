"""Typed access to the key-value section of a GGUF file."""

from pathlib import Path
from typing import TypeVar

from gguf import GGUFReader

from ascend_integration.checkpoints.errors import CheckpointError

T = TypeVar("T")


class GgufFile:
    """A GGUF file opened for reading: `tensors` as the gguf package gives them, keys checked for presence and type.

    Raises `CheckpointError` when the file is missing or is not a GGUF file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise CheckpointError(f"GGUF file {path} does not exist")
        try:
            self._reader = GGUFReader(path)
        except (ValueError, IndexError) as error:
            raise CheckpointError(f"{path} is not a readable GGUF file: {error}") from error
        self.tensors = self._reader.tensors

    def optional(self, key: str, kind: type[T]) -> T | None:
        """The value of `key`, or None when the file does not have it; `CheckpointError` when it has another type."""
        field = self._reader.get_field(key)
        if field is None:
            return None
        value = field.contents()
        if not isinstance(value, kind):
            held = type(value).__name__
            raise CheckpointError(f"{self.path}: key {key!r} holds {held}, not {kind.__name__}; the file is damaged")
        return value

    def require(self, key: str, kind: type[T]) -> T:
        """The value of `key`; `CheckpointError` when it is absent or of another type."""
        value = self.optional(key, kind)
        if value is None:
            raise CheckpointError(f"{self.path}: key {key!r} is missing; the file is damaged or incomplete")
        return value
