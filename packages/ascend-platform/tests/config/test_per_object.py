"""The cache by identity."""

from __future__ import annotations

import gc

from vllm_ascend.config.per_object import PerObject


class Unhashable:
    """Equal to every other one, as vLLM's config objects may be."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return True


def test_equal_objects_have_their_own_values() -> None:
    cache: PerObject[int] = PerObject()
    first, second = Unhashable(), Unhashable()
    assert cache.put(first, 1) == 1
    assert cache.get(first) == 1
    assert cache.get(second) is None


def test_an_entry_goes_with_its_object() -> None:
    cache: PerObject[int] = PerObject()
    key = Unhashable()
    identity = id(key)
    cache.put(key, 1)
    del key
    gc.collect()
    assert identity not in cache._values
