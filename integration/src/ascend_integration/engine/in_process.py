"""A vLLM engine inside the calling process, taken down so that the next one starts on an empty device."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from vllm import LLM, RequestOutput, SamplingParams
from vllm.distributed import cleanup_dist_env_and_memory
from vllm.model_executor.models import interfaces

# The smallest block of the vendor's fused attention.
BLOCK_SIZE = 128
# Small enough to start at once, large enough for eight sequences of the tests.
_DEFAULTS: dict[str, Any] = {
    "max_model_len": 512,
    "max_num_batched_tokens": 256,
    "max_num_seqs": 8,
    "block_size": BLOCK_SIZE,
    "kv_cache_memory_bytes": 64 << 20,
    "seed": 0,
    "disable_log_stats": True,
}


@contextmanager
def in_process_engine(model: str, **settings: Any) -> Iterator[LLM]:
    """`LLM(model, **settings)` over the defaults above for the length of the block.

    The caller's process must have `VLLM_ENABLE_V1_MULTIPROCESSING=0`: a process that runs one engine after another
    saves the imports, which take longer than a tiny model's engine.
    """
    # vLLM collects garbage some fifteen times while an engine starts and stops. Walking through all that was imported
    # takes longer than the rest of a tiny engine's start, so it is set aside, but not what the last engine left behind;
    # vLLM brings it back after its captures.
    gc.collect()
    gc.freeze()
    llm = LLM(model, **{**_DEFAULTS, **settings})
    gc.freeze()
    try:
        yield llm
    finally:
        engine = llm.llm_engine
        with patch("gc.collect", lambda *_: 0):  # once, below, is enough
            engine.engine_core.shutdown()
        # The caller may still hold the LLM. Graphs that outlive the clean-up below leave their memory pool behind, and
        # the next engine's first capture fails.
        del engine.engine_core, engine.model_executor, engine, llm
        # vLLM remembers here every model with images, weights and KV cache with it, for as long as the process lives.
        interfaces._language_model_by_module.clear()
        cleanup_dist_env_and_memory()


def greedy_tokens(llm: LLM, prompts: Sequence[Sequence[int]], new_tokens: int) -> list[list[int]]:
    """Greedy continuations of token prompts, submitted together, in the prompts' order."""
    parameters = SamplingParams(temperature=0, max_tokens=new_tokens, ignore_eos=True, detokenize=False)
    return [list(output.outputs[0].token_ids) for output in generate(llm, prompts, parameters)]


def generate(
    llm: LLM, prompts: Sequence[Sequence[int]], parameters: SamplingParams | Sequence[SamplingParams]
) -> list[RequestOutput]:
    """`LLM.generate` on token prompts without its progress bar."""
    return llm.generate([{"prompt_token_ids": list(prompt)} for prompt in prompts], parameters, use_tqdm=False)
