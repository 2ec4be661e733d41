"""The sampler: the short path gives what vLLM's gives, filters follow their definition, grammars forbid tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from vllm.v1.sample.logits_processor import LogitsProcessors
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.sample.sampler import Sampler

from vllm_ascend.sample.bitmask import apply_grammar_bitmask, apply_token_bitmask
from vllm_ascend.sample.sampler import AscendSampler, AscendTopKTopPSampler, is_plain_greedy

ROWS, VOCABULARY = 3, 70


def sampling_metadata(**changes: Any) -> SamplingMetadata:
    """A greedy batch without any wish."""
    zeros = torch.zeros(ROWS, device="npu")
    fields: dict[str, Any] = {
        "temperature": None,
        "all_greedy": True,
        "all_random": False,
        "top_p": None,
        "top_k": None,
        "generators": {},
        "max_num_logprobs": None,
        "no_penalties": True,
        "prompt_token_ids": None,
        "frequency_penalties": zeros,
        "presence_penalties": zeros,
        "repetition_penalties": zeros + 1,
        "output_token_ids": [[] for _ in range(ROWS)],
        "allowed_token_ids_mask": None,
        "bad_words_token_ids": {},
        "logitsprocs": LogitsProcessors(),
    }
    return SamplingMetadata(**{**fields, **changes})


@pytest.fixture
def logits() -> torch.Tensor:
    return torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(3)).npu()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_plain_greedy_equals_the_general_sampler(logits: torch.Tensor, dtype: torch.dtype) -> None:
    logits = logits.to(dtype)
    logits[1, 5] = logits[1, 9] = 50  # a tie: both must take the first
    metadata = sampling_metadata()
    assert is_plain_greedy(metadata)
    ours = AscendSampler()(logits.clone(), metadata)
    general = Sampler().forward(logits.clone(), metadata)
    assert ours.sampled_token_ids.dtype == general.sampled_token_ids.dtype == torch.int32
    assert torch.equal(ours.sampled_token_ids.cpu(), general.sampled_token_ids.cpu())
    assert ours.sampled_token_ids[1].item() == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"all_greedy": False},
        {"no_penalties": False},
        {"max_num_logprobs": 0},
        {"logprob_token_ids": {0: [1]}},
        {"bad_words_token_ids": {0: [[1]]}},
        {"allowed_token_ids_mask": torch.zeros(ROWS, VOCABULARY, dtype=torch.bool)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_any_wish_leaves_the_short_path(changes: dict[str, Any]) -> None:
    assert not is_plain_greedy(sampling_metadata(**changes))


def test_forbidden_tokens_change_a_greedy_choice(logits: torch.Tensor) -> None:
    best = logits.argmax(-1)
    mask = torch.zeros(ROWS, VOCABULARY, dtype=torch.bool, device="npu")
    mask[torch.arange(ROWS, device="npu"), best] = True
    sampled = AscendSampler()(logits.clone(), sampling_metadata(allowed_token_ids_mask=mask)).sampled_token_ids
    second = logits.cpu().topk(2).indices[:, 1]
    assert sampled.cpu().flatten().tolist() == second.tolist()


def test_top_k_and_top_p_keep_what_they_should() -> None:
    probabilities = torch.tensor([[0.4, 0.3, 0.2, 0.1]])
    sampler = AscendTopKTopPSampler()
    seen = {"k": set(), "p": set()}
    for seed in range(40):
        for name, k, p in (("k", torch.tensor([2]).npu(), None), ("p", None, torch.tensor([0.65]).npu())):
            generator = {0: torch.Generator(device="npu").manual_seed(seed)}
            token, _ = sampler(probabilities.log().npu(), generator, k, p)
            seen[name].add(token.item())
    # Top-p keeps the smallest set of at least 0.65: 0.4 + 0.3.
    assert seen == {"k": {0, 1}, "p": {0, 1}}


def test_a_seed_repeats_its_tokens(logits: torch.Tensor) -> None:
    def draw(seed: int) -> list[int]:
        generators = {row: torch.Generator(device="npu").manual_seed(seed + row) for row in range(ROWS)}
        return AscendTopKTopPSampler()(logits.clone(), generators, None, None)[0].cpu().tolist()

    assert draw(1) == draw(1)
    assert len({tuple(draw(seed)) for seed in range(8)}) > 1


def bit_rows(allowed: list[set[int]]) -> np.ndarray:
    words = np.zeros((len(allowed), -(-VOCABULARY // 32)), dtype=np.int64)
    for row, tokens in enumerate(allowed):
        for token in tokens:
            words[row, token // 32] |= 1 << (token % 32)
    return words.astype(np.uint32).view(np.int32).reshape(words.shape)


def test_bitmask_of_selected_rows(logits: torch.Tensor) -> None:
    allowed = [{0, 31, 32, 69}, {5}]
    before = logits.cpu().clone()
    apply_token_bitmask(logits, torch.from_numpy(bit_rows(allowed)).npu(), torch.tensor([2, 0]).npu())
    after = logits.cpu()
    for row, tokens in ((2, allowed[0]), (0, allowed[1])):
        assert set(after[row].isfinite().nonzero().flatten().tolist()) == tokens
        assert torch.equal(after[row, sorted(tokens)], before[row, sorted(tokens)])
    assert torch.equal(after[1], before[1])


def test_grammar_rows_follow_the_scheduler_not_the_batch() -> None:
    logits = torch.zeros(4, VOCABULARY, device="npu")  # b has one draft token, so it owns rows 1 and 2
    scheduled = SimpleNamespace(scheduled_spec_decode_tokens={"b": [7]})
    grammar = SimpleNamespace(
        structured_output_request_ids=["c", "gone", "b"], grammar_bitmask=bit_rows([{1}, {2}, {3}, {4}])
    )
    apply_grammar_bitmask(scheduled, grammar, ["a", "b", "c"], logits)
    finite = [set(row.isfinite().nonzero().flatten().tolist()) for row in logits.cpu()]
    assert finite == [set(range(VOCABULARY)), {3}, {4}, {1}]
