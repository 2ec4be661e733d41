"""Captured attention: each replay uses the lengths of its own layer, given before it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from vllm_ascend.attention.impl import AscendAttentionImpl
from vllm_ascend.attention.metadata import AscendAttentionMetadata
from vllm_ascend.graph.tasks import GraphTasks, record_tasks, recording_tasks

HEADS, SIZE, BLOCK = 4, 64, 128
ROWS = 2


def decode_reference(query: torch.Tensor, cache: torch.Tensor, pages: list[int], lens: list[int]) -> torch.Tensor:
    rows = []
    for row, (page, length) in enumerate(zip(pages, lens)):
        key, value = (cache[half, page, :length].double().cpu() for half in (0, 1))
        scores = torch.einsum("hd,khd->hk", query[row].double().cpu(), key) * SIZE**-0.5
        rows.append(torch.einsum("hk,khd->hd", scores.softmax(-1), value))
    return torch.stack(rows)


@pytest.fixture
def captured():
    """Two layers with caches of their own in one graph."""
    torch.manual_seed(0)
    query = torch.randn(ROWS, HEADS, SIZE).bfloat16().npu()
    caches = [torch.randn(2, 4, BLOCK, HEADS, SIZE).bfloat16().npu() for _ in range(2)]
    tables = [torch.tensor([[1], [2]], dtype=torch.int32).npu(), torch.tensor([[3], [1]], dtype=torch.int32).npu()]
    outputs = [torch.zeros(ROWS, HEADS, SIZE).bfloat16().npu() for _ in range(2)]
    slots = torch.full((ROWS,), -1, dtype=torch.int32).npu()
    names = ["layers.10.attn", "layers.2.attn"]
    impls = [AscendAttentionImpl(HEADS, SIZE, SIZE**-0.5) for _ in range(2)]

    def metadata(lens: list[list[int]]) -> dict[str, AscendAttentionMetadata]:
        return {
            name: AscendAttentionMetadata(ROWS, [1, 2], lens[index], tables[index], slots)
            for index, name in enumerate(names)
        }

    def forward(lens: list[list[int]]) -> None:
        for index, (name, impl) in enumerate(zip(names, impls)):
            layer = SimpleNamespace(layer_name=name)
            impl.forward(layer, query, query, query, caches[index], metadata(lens)[name], outputs[index])

    forward([[1, 1], [1, 1]])
    graph, tasks = torch.npu.NPUGraph(), GraphTasks()
    with torch.npu.graph(graph), record_tasks(tasks):
        forward([[1, 1], [1, 1]])
    return SimpleNamespace(
        graph=graph, tasks=tasks, metadata=metadata, query=query, caches=caches, outputs=outputs, names=names
    )


def test_each_layer_replays_with_its_own_lengths(captured) -> None:
    for lens in ([[7, 90], [33, 128]], [[128, 1], [2, 64]]):
        # A dictionary in another order must not exchange the layers.
        metadata = dict(reversed(captured.metadata(lens).items()))
        captured.tasks.update(metadata, ROWS, torch.npu.current_stream())
        captured.graph.replay()
        torch.npu.synchronize()
        for index, pages in enumerate(([1, 2], [3, 1])):
            expected = decode_reference(captured.query, captured.caches[index], pages, lens[index])
            assert (captured.outputs[index].cpu().double() - expected).abs().max() < 3e-2


def test_layers_of_equal_shape_share_one_workspace(captured) -> None:
    assert [task.layer_name for task in captured.tasks.tasks] == captured.names
    assert len(captured.tasks.workspaces) == 1


def test_lengths_of_another_batch_size_are_refused(captured) -> None:
    with pytest.raises(RuntimeError, match="captured for 4 tokens, but the metadata of layers.10.attn covers 2"):
        captured.tasks.update(captured.metadata([[1, 1], [1, 1]]), 4, torch.npu.current_stream())


def test_attention_captured_without_a_recorder_is_refused() -> None:
    with pytest.raises(RuntimeError, match="outside of ACLGraphWrapper"):
        recording_tasks()
