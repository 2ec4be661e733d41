"""Where an output ends: length, end of sequence, stop tokens and stop strings."""

import pytest
from vllm import SamplingParams

from ascend_integration.engine.in_process import generate

from .engines import on_engines
from .prompts import PROMPTS
from .words import text_of

pytestmark = [
    on_engines("graphs-async", "eager-async"),
    pytest.mark.supports("every text model", "stop conditions", "vLLM's documentation"),
]

END = 2
FORCED_END = {END: 1e4}
LONGEST = 12


@pytest.fixture(scope="package")
def plain(oracle):
    """Greedy continuations of the prompts when nothing stops them."""
    return [oracle.greedy(prompt, LONGEST).tokens for prompt in PROMPTS]


def until_new(tokens, at_least):
    """Index from `at_least` on of the first token that did not come before."""
    return next(i for i in range(at_least, len(tokens)) if tokens[i] not in tokens[:i])


def outputs(served, prompts, parameters):
    return [request.outputs[0] for request in generate(served.llm, prompts, parameters)]


def greedy(**rules):
    return SamplingParams(**{"temperature": 0, "max_tokens": LONGEST, "ignore_eos": True, **rules})


def test_lengths_of_one_batch(served, plain):
    lengths = [1, 2, 3, 5, 8, 12, 7, 4]
    got = outputs(served, PROMPTS, [greedy(max_tokens=length) for length in lengths])
    for tokens, length, output in zip(plain, lengths, got, strict=True):
        assert list(output.token_ids) == tokens[:length]
        assert (output.finish_reason, output.stop_reason) == ("length", None)
        assert output.text.strip() == text_of(tokens[:length])


def test_longest_model_length_ends_an_output(served):
    longest = served.llm.llm_engine.vllm_config.model_config.max_model_len
    prompt = (PROMPTS[0] * longest)[: longest - 6]
    (output,) = outputs(served, [prompt], greedy(max_tokens=None))
    assert len(output.token_ids) == 6
    assert output.finish_reason == "length"


def test_end_of_sequence(served):
    stopped, ignoring = outputs(
        served,
        PROMPTS[:2],
        [greedy(ignore_eos=False, logit_bias=FORCED_END), greedy(ignore_eos=True, logit_bias=FORCED_END)],
    )
    assert (list(stopped.token_ids), stopped.text) == ([END], "")
    assert (stopped.finish_reason, stopped.stop_reason) == ("stop", None)
    assert list(ignoring.token_ids) == [END] * LONGEST
    assert ignoring.finish_reason == "length"


def test_stop_tokens_are_part_of_the_output(served, plain):
    ends = [until_new(tokens, at_least) for tokens, at_least in zip(plain, range(8), strict=True)]
    got = outputs(
        served,
        PROMPTS,
        [greedy(stop_token_ids=[plain[i][end], 1, END]) for i, end in enumerate(ends)],
    )
    for tokens, end, output in zip(plain, ends, got, strict=True):
        assert list(output.token_ids) == tokens[: end + 1]
        assert (output.finish_reason, output.stop_reason) == ("stop", tokens[end])


@pytest.mark.parametrize("included", [False, True], ids=["left-out", "included"])
def test_stop_strings(served, plain, included):
    """The string begins inside one token's text and ends inside a later one's."""
    got = []
    expected = []
    parameters = []
    for tokens in plain:
        text = text_of(tokens)
        words = text.split(" ")
        string = words[4][1] + " " + words[5]
        stop_at = text.index(string)
        expected.append((text[: stop_at + len(string) * included], string))
        parameters.append(greedy(stop=["not a word", string], include_stop_str_in_output=included))
    got = outputs(served, PROMPTS, parameters)
    for (text, string), output in zip(expected, got, strict=True):
        assert output.text.lstrip() == text
        assert (output.finish_reason, output.stop_reason) == ("stop", string)


def test_an_ended_request_leaves_the_others_alone(served, plain):
    """Requests end at different steps; the batch is made smaller under those that go on."""
    end = until_new(plain[1], 2)
    got = outputs(
        served,
        PROMPTS[:5],
        [greedy(max_tokens=1), greedy(stop_token_ids=[plain[1][end]]), greedy(), greedy(max_tokens=4), greedy()],
    )
    assert [list(output.token_ids) for output in got] == [
        plain[0][:1],
        plain[1][: end + 1],
        plain[2],
        plain[3][:4],
        plain[4],
    ]
