"""Aborted requests: their KV blocks are free again, and the other requests' tokens are what they would have been."""

import pytest
from vllm import LLM, SamplingParams

from .engines import on_engines
from .prompts import LONG_PROMPTS, PROMPTS

pytestmark = [
    on_engines("graphs-async", "eager-async"),
    pytest.mark.supports("every text model", "aborted requests", "the same requests alone"),
]


def free_blocks(llm: LLM) -> int:
    return llm.llm_engine.engine_core.engine_core.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()


@pytest.mark.parametrize("steps_before", [0, 1, 3, 20], ids=lambda steps: f"after-{steps}-steps")
def test_abort(served, steps_before):
    """After no step a request waits, after one it is in its prefill, later it decodes."""
    engine = served.llm.llm_engine
    served.llm.reset_prefix_cache()
    before = free_blocks(served.llm)
    parameters = SamplingParams(temperature=0, max_tokens=40, ignore_eos=True)
    prompts = {"kept-1": PROMPTS[1], "aborted-1": LONG_PROMPTS[2], "kept-2": PROMPTS[4], "aborted-2": PROMPTS[5]}
    for name, prompt in prompts.items():
        engine.add_request(name, {"prompt_token_ids": prompt}, parameters)
    finished = {}

    def step():
        for output in engine.step():
            if output.finished:
                finished[output.request_id] = output.outputs[0]

    for _ in range(steps_before):
        step()
    engine.abort_request(["aborted-1", "aborted-2"])
    while engine.has_unfinished_requests():
        step()
    kept = {name: output for name, output in finished.items() if output.finish_reason != "abort"}
    assert kept.keys() == {"kept-1", "kept-2"}
    for name, output in kept.items():
        assert list(output.token_ids) == served.oracle.greedy(prompts[name], 40).tokens
    # Steps in flight when the last request ended are done with before the next request's first step.
    served.llm.generate([{"prompt_token_ids": PROMPTS[0]}], SamplingParams(max_tokens=1), use_tqdm=False)
    assert free_blocks(served.llm) == before


def test_abort_of_an_unknown_request_changes_nothing(served):
    served.llm.llm_engine.abort_request(["never seen"])
    assert not served.llm.llm_engine.has_unfinished_requests()
