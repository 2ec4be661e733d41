"""A cache keyed by the identity of an object that cannot be hashed; entries go with the object."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

Value = TypeVar("Value")


class PerObject(Generic[Value]):
    """Remembers one value per living object."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[object], Value]] = {}

    def get(self, key: object) -> Value | None:
        """The value of this very object, or None."""
        entry = self._values.get(id(key))
        return entry[1] if entry is not None and entry[0]() is key else None

    def put(self, key: object, value: Value) -> Value:
        """Remember and return the value, until ``key`` is collected."""
        identity = id(key)
        self._values[identity] = (weakref.ref(key, lambda _: self._values.pop(identity, None)), value)
        return value
