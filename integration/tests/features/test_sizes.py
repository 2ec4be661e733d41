"""Sizes off the usual grid: every full batch has a graph, and an engine takes the share of memory it was given."""

import pytest
import torch
from vllm import LLM

from ascend_integration.checkpoints.tiny import TINY_MODELS
from ascend_integration.engine.in_process import greedy_tokens, in_process_engine
from ascend_sim import instruments

STEPS = 8
# Buffers of the sampler, of graphs and of the profile run, which are measured and not known, are beside the KV cache.
LEAST_SHARE_USED = 0.9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(TINY_MODELS["llama"].save(tmp_path_factory.mktemp("models") / "llama"))


@pytest.mark.parametrize(("requests", "share"), [(12, 0.05), (20, 0.1), (90, 0.2)], ids=lambda value: str(value))
@pytest.mark.supports("every text model", "largest batch in a graph; --gpu-memory-utilization", "counts, device memory")
def test_full_batches_and_shares_of_memory(folder: str, requests: int, share: float):
    with in_process_engine(
        folder,
        skip_tokenizer_init=True,
        max_num_seqs=requests,
        max_num_batched_tokens=512,
        gpu_memory_utilization=share,
        kv_cache_memory_bytes=None,
    ) as llm:
        check_memory(llm, share)
        prompts = [[5 + index, 6, 7] for index in range(requests)]
        with instruments.counting() as counts:
            greedy_tokens(llm, prompts, STEPS)
        # All prompts fit into one step; every later step is of the whole batch.
        assert counts["replays"] == STEPS - 1
        check_memory(llm, share)


def check_memory(llm: LLM, share: float) -> None:
    given = share * torch.npu.mem_get_info()[1]
    assert LEAST_SHARE_USED * given < torch.npu.memory_reserved() <= given
    cache = llm.llm_engine.vllm_config.cache_config
    # Keys and values, three layers, two heads of 16 elements in bfloat16, pages of 128 tokens.
    assert cache.num_gpu_blocks * (2 * 3 * 2 * 16 * 2 * 128) < given
