"""Device memory that is given back while an engine sleeps: weights and KV cache.

A tensor keeps its storage, of which only the memory goes: views, parameters and tensors that share it stay as they are
and are whole again once it is back. The memory lies elsewhere then, so graphs have to be captured anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

WEIGHTS = "weights"
KV_CACHE = "kv_cache"


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """Every tensor in nested lists, tuples and dictionaries."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, dict):
        yield from tensors_in(list(values.values()))
    elif isinstance(values, list | tuple):
        for value in values:
            yield from tensors_in(value)


def _bytes(storage: torch.UntypedStorage) -> torch.Tensor:
    """The bytes of ``storage`` as a tensor on its device."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


@dataclass
class _Asleep:
    """A storage without memory, how much it had, and what was in it if that is kept."""

    storage: torch.UntypedStorage
    size: int
    kept: torch.Tensor | None


@dataclass
class SleepingMemory:
    """What sleeps, by tag (``weights`` or ``kv_cache``).

    Attributes:
        device: whose memory is freed; tensors elsewhere stay as they are.
        pin_memory: whether what is kept on the host lies in pinned memory.
    """

    device: torch.device
    pin_memory: bool
    _asleep: dict[str, list[_Asleep]] = field(default_factory=dict)

    @property
    def tags(self) -> list[str]:
        """What sleeps now."""
        return list(self._asleep)

    def sleep(self, tag: str, tensors: Iterable[torch.Tensor], *, keep: bool) -> int:
        """Free the memory of ``tensors``, with its contents kept on the host or lost. Does nothing if asleep already.

        Returns:
            How many bytes were freed.
        """
        if tag in self._asleep:
            return 0
        # Tied weights and views share a storage.
        storages = {it.untyped_storage()._cdata: it.untyped_storage() for it in tensors}
        # Noted one by one: what fails half way can still be woken.
        asleep = self._asleep[tag] = []
        for storage in storages.values():
            size = storage.nbytes()
            if not size or storage.device != self.device:
                continue
            kept = None
            if keep:
                kept = torch.empty(size, dtype=torch.uint8, pin_memory=self.pin_memory)
                kept.copy_(_bytes(storage))
            storage.resize_(0)
            asleep.append(_Asleep(storage, size, kept))
        return sum(it.size for it in asleep)

    def wake(self, tag: str) -> None:
        """Give memory back, with what was kept or else zeros. Does nothing if ``tag`` is awake.

        Raises:
            torch.OutOfMemoryError: the device lacks room; what still sleeps is kept, and a later call goes on.
        """
        asleep = self._asleep.get(tag, [])
        while asleep:
            it = asleep[-1]
            it.storage.resize_(it.size)
            contents = _bytes(it.storage)
            if it.kept is None:
                contents.zero_()
            else:
                contents.copy_(it.kept)
            asleep.pop()
        self._asleep.pop(tag, None)
