"""bfloat16 and float16: the right token wherever rounding cannot decide, and logits within transformers' own error.

The reference is transformers in float32 on the weights as rounded to the served type. How far a run in that type may be
from it is taken from transformers too: its own run in that type, on the same tokens, gives the tolerances. A
token is checked wherever the reference's best two logits are further apart than twice the tolerance.
"""

from dataclasses import dataclass

import pytest
import torch
from vllm import ModelRegistry, RequestOutput, SamplingParams

from ascend_integration.engine.grid import NEW_TOKENS, EngineSettings, Graphs
from ascend_integration.engine.in_process import generate, in_process_engine
from ascend_integration.oracle import Reference

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Scored:
    """What was served for a request, and the exact and transformers' own reduced-precision logits on its tokens."""

    output: RequestOutput
    reference: torch.Tensor
    reduced: torch.Tensor

    @property
    def prompt_length(self) -> int:
        return len(self.output.prompt_token_ids)

    @property
    def served_tokens(self) -> list[int]:
        return list(self.output.outputs[0].token_ids)

    def greedy_rows(self) -> torch.Tensor:
        """Reference logits `[new tokens, vocabulary]` from which each served token was chosen."""
        return self.reference[self.prompt_length - 1 :]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (family, dtype, graphs),
            id=f"{family}-{dtype}-{graphs.name.lower()}",
            marks=pytest.mark.supports(family, f"text, {dtype}", "transformers, logits"),
        )
        for family, dtype, graphs in [
            ("qwen3", "bf16", Graphs.FULL),
            ("gemma3", "bf16", Graphs.EAGER),
            ("sinks", "bf16", Graphs.FULL),
            ("llama", "fp16", Graphs.FULL),
            ("qwen3", "fp16", Graphs.FULL),
            # No sinks in float16: the vendor's operator takes learnable_sink in bfloat16 alone.
            ("mistral", "fp16", Graphs.EAGER),
        ]
    ],
)
def scored(request, tiny_folder, prompts) -> list[Scored]:
    family, dtype_name, graphs = request.param
    dtype = DTYPES[dtype_name]
    if family == "sinks":
        ModelRegistry.register_model("SinksForCausalLM", "ascend_integration.engine.sinks_model:SinksForCausalLM")
    settings = EngineSettings(graphs=graphs, prefix_caching=False, step_tokens=64)
    with in_process_engine(
        str(tiny_folder(family)), skip_tokenizer_init=True, dtype=dtype, **settings.engine_arguments()
    ) as llm:
        parameters = SamplingParams(
            temperature=0, max_tokens=NEW_TOKENS, ignore_eos=True, detokenize=False, logprobs=1, prompt_logprobs=1
        )
        outputs = generate(llm, prompts, parameters)
    exact = Reference.load(tiny_folder(family), torch.float32, dtype)
    reduced = Reference.load(tiny_folder(family), dtype, dtype)
    result = []
    for output in outputs:
        sequence = [*output.prompt_token_ids, *output.outputs[0].token_ids][:-1]
        result.append(Scored(output, exact.logits(sequence), reduced.logits(sequence)))
    return result


@pytest.fixture(scope="module")
def errors(scored: list[Scored]) -> torch.Tensor:
    """Every error of transformers' own reduced-precision logits. Ours are as large, and independent of them."""
    return torch.cat([(one.reduced - one.reference).flatten() for one in scored])


def test_greedy_tokens_where_the_gap_decides(scored, errors):
    tolerance = 4 * float(errors.square().mean().sqrt())
    decided = 0
    for one in scored:
        best = one.greedy_rows().topk(2)
        clear = best.values[:, 0] - best.values[:, 1] > 2 * tolerance
        served = torch.tensor(one.served_tokens)
        assert torch.equal(served[clear], best.indices[clear, 0])
        decided += int(clear.sum())
    assert decided > 0.1 * sum(len(one.served_tokens) for one in scored), "too few clear gaps for the test to mean much"


def test_chosen_logprobs_of_decoding(scored, errors):
    tolerance = 2 * float(errors.abs().max())
    for one in scored:
        expected = one.greedy_rows().log_softmax(-1)
        for row, (token, entry) in enumerate(zip(one.served_tokens, one.output.outputs[0].logprobs, strict=True)):
            # A log-softmax moves by at most twice what its logits move.
            assert entry[token].logprob == pytest.approx(float(expected[row, token]), abs=2 * tolerance)


def test_prompt_logprobs_of_prefill(scored, errors):
    tolerance = 2 * float(errors.abs().max())
    for one in scored:
        expected = one.reference.log_softmax(-1)
        assert one.output.prompt_logprobs[0] is None
        for position in range(1, one.prompt_length):
            token = one.output.prompt_token_ids[position]
            served = one.output.prompt_logprobs[position][token].logprob
            assert served == pytest.approx(float(expected[position - 1, token]), abs=2 * tolerance)
