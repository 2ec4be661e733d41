"""Static map files: what reads back, and what is refused with layer and rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascend_moe.eplb import initial_placement
from ascend_moe.eplb.maps import MapError, check_same, read_map, write_map


def content(*layers: list[list[int]]) -> dict[str, Any]:
    """A map file's content, one list of ranks per layer."""
    return {
        "moe_layer_count": len(layers),
        "layer_list": [
            {
                "layer_id": layer,
                "device_count": len(ranks),
                "device_list": [{"device_id": rank, "device_expert": held} for rank, held in enumerate(ranks)],
            }
            for layer, ranks in enumerate(layers)
        ],
    }


def test_the_documented_form_is_read(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps(content([[0, 1], [2, 0]], [[2, 1], [0, 2]])))
    found = read_map(path, layers=2, experts=3, ranks=2)
    assert found.placement.tolist() == [[[0, 1], [2, 0]], [[2, 1], [0, 2]]]
    assert found.redundant == 1


def test_what_is_written_reads_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    placement = initial_placement(3, 8, 4, 4)
    path = tmp_path / "map.json"
    path.write_text("an older map")
    write_map(path, placement)
    assert (read_map(path, 3, 8, 4).placement == placement).all()
    assert [it.name for it in tmp_path.iterdir()] == ["map.json"]


def test_order_in_the_file_does_not_matter(tmp_path: Path) -> None:
    path, given = tmp_path / "map.json", content([[0, 1], [2, 0]], [[2, 1], [0, 2]])
    given["layer_list"].reverse()
    given["layer_list"][0]["device_list"].reverse()
    path.write_text(json.dumps(given))
    assert read_map(path, 2, 3, 2).placement[1].tolist() == [[2, 1], [0, 2]]


def test_a_draft_layer_has_the_same_redundancy_and_the_initial_placement(tmp_path: Path) -> None:
    path = tmp_path / "map.json"
    path.write_text(json.dumps(content([[2, 1], [0, 2]])))
    found = read_map(path, 1, 3, 2)
    assert found.layer(0).tolist() == [[2, 1], [0, 2]]
    assert found.layer(1).tolist() == [[0, 1], [2, 0]]


GOOD = content([[0, 1], [2, 0]], [[2, 1], [0, 2]])


def changed(path: str, value: object) -> str:
    """GOOD as text, with the entry at a dotted path replaced."""
    copy = json.loads(json.dumps(GOOD))
    *way, last = [int(it) if it.isdigit() else it for it in path.split(".")]
    target = copy
    for step in way:
        target = target[step]
    target[last] = value
    return json.dumps(copy)


EXPERTS = "layer_list.1.device_list.1.device_expert"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not valid: the file: Invalid JSON"),
        ("[]", "is not valid"),
        (changed("layer_list.0.device_list.1.device_expert", "x"), r"layer_list\.0\.device_list\.1\.device_expert"),
        (changed(EXPERTS, [0, 1, 2]), "layer 1, rank 1 has 3 experts, layer 0, rank 0 has 2"),
        (changed(EXPERTS, [0, 0]), "layer 1, rank 1 holds expert 0 twice"),
        (changed(EXPERTS, [0, 3]), "layer 1, rank 1, slot 1 holds expert 3; there are experts 0 to 2"),
        (changed(EXPERTS, [2, 1]), "layer 1 has expert 0 on none"),
        (changed(EXPERTS, [0, -1]), "greater than or equal to 0"),
        (changed("layer_list.1.device_list.1.device_id", 0), r"ranks 0 to 1 once each, it has \[0, 0\]"),
        (changed("layer_list.1.device_count", 4), "layer 1 is for 4 ranks, there are 2"),
        (changed("layer_list.1.layer_id", 2), r"must have layers 0 to 1 once each, it has \[0, 2\]"),
        (changed("moe_layer_count", 3), "is about 3 layers, the model has 2"),
    ],
    ids=[
        "cut-off", "list", "type", "unequal", "twice", "unknown", "missing", "negative", "rank-twice", "ranks", "layer",
        "layers",
    ],
)  # fmt: skip
def test_a_corrupt_file_is_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(MapError, match=message) as caught:
        read_map(path, 2, 3, 2)
    assert str(path) in str(caught.value)


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(MapError, match=r"none\.json cannot be read: .*No such file"):
        read_map(tmp_path / "none.json", 1, 2, 2)
    with pytest.raises(MapError, match=r"map\.json cannot be written"):
        write_map(tmp_path / "no" / "map.json", initial_placement(1, 2, 2))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MapError, match=r"binary cannot be read"):
        read_map(tmp_path / "binary", 1, 2, 2)


def test_ranks_with_different_files_are_named(tmp_path: Path) -> None:
    digests = []
    for rank, row in enumerate([[[0, 1], [2, 0]], [[0, 1], [2, 0]], [[2, 1], [0, 2]]]):
        path = tmp_path / f"{rank}.json"
        path.write_text(json.dumps(content(row)))
        digests.append(read_map(path, 1, 3, 2).digest)
    check_same(digests[:2])
    with pytest.raises(MapError, match=r"ranks \[2\] read another expert map than rank 0"):
        check_same(digests)


def test_digests_tell_shapes_apart(tmp_path: Path) -> None:
    """Four experts on two ranks or on four: the same numbers in the same order."""
    digests = set()
    for ranks in (2, 4):
        write_map(tmp_path / "map.json", np.arange(4).reshape(1, ranks, -1))
        digests.add(read_map(tmp_path / "map.json", 1, 4, ranks).digest)
    assert len(digests) == 2
