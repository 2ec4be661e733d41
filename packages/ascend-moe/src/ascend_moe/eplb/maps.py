"""Static maps: a placement in a JSON file, read with every check and written so that it reads back.

{"moe_layer_count": 1, "layer_list": [{"layer_id": 0, "device_count": 2, "device_list": [
    {"device_id": 0, "device_expert": [0, 1]}, {"device_id": 1, "device_expert": [1, 0]}]}]}
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, ValidationError

from ascend_moe.eplb.arrays import Integers
from ascend_moe.eplb.placement import InvalidPlacementError, checked_placement, initial_placement


class MapError(ValueError):
    """A map file that cannot be used; the message names the file, and layer and rank where it is about one."""


class _Device(BaseModel):
    model_config = ConfigDict(strict=True)
    device_id: NonNegativeInt
    device_expert: list[NonNegativeInt]


class _Layer(BaseModel):
    model_config = ConfigDict(strict=True)
    layer_id: NonNegativeInt
    device_count: PositiveInt
    device_list: list[_Device]


class _File(BaseModel):
    model_config = ConfigDict(strict=True)
    moe_layer_count: PositiveInt
    layer_list: list[_Layer]


@dataclass(frozen=True)
class ExpertMap:
    """A placement that was read from a file.

    Attributes:
        placement: [layers, ranks, slots].
        experts: number of logical experts.
    """

    placement: Integers
    experts: int

    @property
    def redundant(self) -> int:
        """Physical experts of a layer beyond one of each."""
        return int(self.placement[0].size) - self.experts

    @property
    def digest(self) -> str:
        """A digest of the placement, for ranks to compare (`check_same`)."""
        return hashlib.sha256(
            repr((self.placement.shape, self.experts)).encode() + self.placement.tobytes()
        ).hexdigest()

    def layer(self, layer_id: int) -> Integers:
        """Return the placement of a layer, [ranks, slots].

        Layers behind those of the map belong to a draft model: they have the same number of redundant experts, and the
        initial placement, which is not balanced.
        """
        if layer_id < len(self.placement):
            return self.placement[layer_id]
        return initial_placement(1, self.experts, self.placement.shape[1], self.redundant)[0]


def read_map(path: Path, layers: int, experts: int, ranks: int) -> ExpertMap:
    """Read the map file at `path` for a model with this many layers with experts and logical experts.

    Raises:
        MapError: the file cannot be read, is no JSON or of another form, is about another number of layers or ranks,
            names a layer or rank twice or not at all, or holds an invalid placement, such as ranks with different
            numbers of experts.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MapError(f"the expert map {path} cannot be read: {error}") from error
    try:
        content = _File.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(it) for it in first["loc"]) or "the file"
        raise MapError(f"the expert map {path} is not valid: {place}: {first['msg']}") from error
    if content.moe_layer_count != layers:
        raise MapError(f"the expert map {path} is about {content.moe_layer_count} layers, the model has {layers}")
    by_layer = {layer.layer_id: layer for layer in content.layer_list}
    if len(by_layer) != len(content.layer_list) or set(by_layer) != set(range(layers)):
        ids = [layer.layer_id for layer in content.layer_list]
        raise MapError(f"the expert map {path} must have layers 0 to {layers - 1} once each, it has {ids}")
    rows = [_ranks_of(by_layer[layer], path, ranks) for layer in range(layers)]
    slots = len(rows[0][0])
    for layer, row in enumerate(rows):
        for rank, held in enumerate(row):
            if len(held) != slots:
                raise MapError(
                    f"the expert map {path}, layer {layer}, rank {rank} has {len(held)} experts, "
                    f"layer 0, rank 0 has {slots}; all must have the same number"
                )
    try:
        return ExpertMap(checked_placement(np.array(rows, dtype=np.int64), experts), experts)
    except InvalidPlacementError as error:
        raise MapError(f"the expert map {path}: {error}") from error


def _ranks_of(layer: _Layer, path: Path, ranks: int) -> list[list[int]]:
    """Return the experts of each rank of one layer."""
    if layer.device_count != ranks:
        raise MapError(
            f"the expert map {path}, layer {layer.layer_id} is for {layer.device_count} ranks, there are {ranks}"
        )
    by_rank = {device.device_id: device.device_expert for device in layer.device_list}
    if len(by_rank) != len(layer.device_list) or set(by_rank) != set(range(ranks)):
        ids = [device.device_id for device in layer.device_list]
        raise MapError(
            f"the expert map {path}, layer {layer.layer_id} must have ranks 0 to {ranks - 1} once each, it has {ids}"
        )
    return [by_rank[rank] for rank in range(ranks)]


def write_map(path: Path, placement: Integers) -> None:
    """Write `placement` to `path`; a file that is there is replaced in one step, so that no reader sees half of one.

    Raises:
        MapError: the file cannot be written.
    """
    layers, ranks, _slots = placement.shape
    content = {
        "moe_layer_count": layers,
        "layer_list": [
            {
                "layer_id": layer,
                "device_count": ranks,
                "device_list": [
                    {"device_id": rank, "device_expert": placement[layer, rank].tolist()} for rank in range(ranks)
                ],
            }
            for layer in range(layers)
        ],
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise MapError(f"the expert map {path} cannot be written: {error}") from error


def check_same(digests: Sequence[str]) -> None:
    """Check that all ranks read the same map; `digests` are theirs, in order of rank.

    Raises:
        MapError: some rank read another map than rank 0.
    """
    if others := [rank for rank, digest in enumerate(digests) if digest != digests[0]]:
        raise MapError(f"ranks {others} read another expert map than rank 0: the files must be the same on all hosts")
