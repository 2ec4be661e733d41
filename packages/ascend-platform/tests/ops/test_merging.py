"""Embeddings of images take the places of their placeholders, on the device (public failure reports)."""

from __future__ import annotations

import pytest
import torch
from vllm.model_executor.models.utils import _merge_multimodal_embeddings


def test_embeddings_take_their_places() -> None:
    text = torch.zeros(6, 4, device="npu")
    places = torch.tensor([False, True, True, False, False, True])
    images = [torch.full((2, 4), 1.0, device="npu"), torch.full((1, 4), 2.0, device="npu")]
    merged = _merge_multimodal_embeddings(text, images, places.npu())
    assert merged[:, 0].tolist() == [0, 1, 1, 0, 0, 2]


def test_as_many_embeddings_as_places_are_needed() -> None:
    places = torch.arange(4000) < 3905
    images = [torch.ones(65, 4, device="npu")]
    with pytest.raises(ValueError, match=r"65 .*3905"):
        _merge_multimodal_embeddings(torch.zeros(4000, 4, device="npu"), images, places.npu())
