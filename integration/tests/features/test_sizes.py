"""Sizes off the usual grid: every full batch has a graph, and an engine takes the share of memory it was given."""

import pytest
import torch

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.in_process import greedy_tokens, in_process_engine
from ascend_sim import instruments

STEPS = 8
# The peak of the profile run, which is measured and not known, is part of the share without being used later.
LEAST_SHARE_USED = 0.9
# torch leaves the end of a segment to its tensor if it is smaller than 1 MiB; each of three layers has one.
UNSPLIT_ENDS = 3 << 20
# torch takes memory from the device in segments of 20 MiB and fills them; a step uses parts of two.
WHOLE_SEGMENTS = 2 * (20 << 20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(TINY_MODELS["llama"].save(tmp_path_factory.mktemp("models") / "llama"))


@pytest.mark.parametrize("requests", [12, 20, 90])
@pytest.mark.supports("every text model", "largest batch in a graph", "counted replays")
def test_the_fullest_batch_has_a_graph(folder: str, requests: int):
    with in_process_engine(folder, skip_tokenizer_init=True, max_num_seqs=requests, max_num_batched_tokens=512) as llm:
        prompts = [[5 + index, 6, 7] for index in range(requests)]
        with instruments.counting() as counts:
            greedy_tokens(llm, prompts, STEPS)
    # All prompts fit into one step; every later step is of the whole batch.
    assert counts["replays"] == STEPS - 1


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
@pytest.mark.supports("every text model", "--gpu-memory-utilization", "device memory")
def test_shares_of_memory(folder: str, share: float):
    # What engines before this one in the process have left: constants, which it uses too, and the segments around them.
    before, reserved = torch.npu.memory_allocated(), torch.npu.memory_reserved()
    with in_process_engine(
        folder, skip_tokenizer_init=True, gpu_memory_utilization=share, kv_cache_memory_bytes=None, enforce_eager=True
    ) as llm:
        torch.npu.reset_peak_memory_stats()
        greedy_tokens(llm, [[5, 6, 7]] * 8, STEPS)
        given = share * torch.npu.mem_get_info()[1]
        assert LEAST_SHARE_USED * given < torch.npu.max_memory_allocated() - before <= given + UNSPLIT_ENDS
        assert torch.npu.memory_reserved() - reserved <= given + WHOLE_SEGMENTS
