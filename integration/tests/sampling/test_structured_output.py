"""Structured output of SmolLM2, alone and beside free requests: valid by jsonschema and re, the others unchanged."""

import json
import re
from collections.abc import Iterator

import jsonschema
import pytest
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

from ascend_integration.checkpoints import smollm2_checkpoint
from ascend_integration.engine.grid import GRAPH_SIZES
from ascend_integration.engine.in_process import in_process_engine

pytestmark = [
    pytest.mark.supports("every text model", "structured output", "jsonschema and re"),
    # vLLM 0.23.0 passes an argument to its matcher that newer releases of xgrammar ignore.
    pytest.mark.filterwarnings("ignore:max_rollback_tokens is deprecated:DeprecationWarning"),
]

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "kind": {"enum": ["cat", "dog"]},
        "toys": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
    },
    "required": ["name", "age", "kind", "toys"],
    "additionalProperties": False,
}
REGEX = r"[A-Z][a-z]{2,5}-\d{3}"
CHOICES = ["positive", "negative"]
GRAMMAR = 'root ::= number ("+" number)+\nnumber ::= [1-9] [0-9]?\n'
PROMPT = "Describe a pet: "
STORY = "Once upon a time there was a"


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with in_process_engine(
        str(smollm2_checkpoint()),
        # In bfloat16 the rounding of a matrix product depends on the batch, and with it a token once in a while.
        dtype="float32",
        additional_config={"allow_float32": True},
        max_model_len=256,
        async_scheduling=True,
        compilation_config={"cudagraph_mode": "FULL_DECODE_ONLY", "cudagraph_capture_sizes": GRAPH_SIZES},
    ) as engine:
        yield engine


def constrained(temperature, seed=None, max_tokens=100, **constraint):
    return SamplingParams(
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
        structured_outputs=StructuredOutputsParams(**constraint),
    )


def generate(llm, prompts, parameters):
    return [request.outputs[0] for request in llm.generate(prompts, parameters, use_tqdm=False)]


@pytest.fixture(scope="module")
def free_alone(llm):
    """A free greedy request with nothing beside it."""
    (output,) = generate(llm, [STORY], free())
    return output.text


def free():
    return SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)


def test_every_kind_in_one_batch_with_free_requests(llm, free_alone):
    """Greedy and random; the free requests stand between the others, and their tokens are those without a grammar."""
    requests = [
        (PROMPT, constrained(0.0, json=SCHEMA)),
        (STORY, free()),
        (PROMPT, constrained(1.0, seed=1, json=json.dumps(SCHEMA))),
        ("A code: ", constrained(0.0, regex=REGEX)),
        ("A code: ", constrained(1.5, seed=2, regex=REGEX)),
        (STORY, free()),
        ("This film is great. My verdict is ", constrained(1.0, seed=3, choice=CHOICES)),
        ("A sum: ", constrained(1.0, seed=4, max_tokens=12, grammar=GRAMMAR)),
    ]
    outputs = generate(llm, [prompt for prompt, _ in requests], [parameters for _, parameters in requests])
    json_greedy, free_1, json_random, regex_greedy, regex_random, free_2, choice, summed = outputs
    for output in (json_greedy, json_random):
        assert output.finish_reason == "stop", output.text
        jsonschema.validate(json.loads(output.text), SCHEMA)
    for output in (regex_greedy, regex_random):
        assert output.finish_reason == "stop"
        assert re.fullmatch(REGEX, output.text)
    assert choice.text in CHOICES
    # The grammar lets the sum go on: cut anywhere, it is the beginning of one.
    assert re.fullmatch(r"[1-9][0-9]?(\+[1-9][0-9]?)*\+?", summed.text)
    assert free_1.text == free_2.text == free_alone


def test_seeds_choose_between_valid_outputs(llm):
    seeds = list(range(8))
    outputs = generate(llm, ["A code: "] * 8, [constrained(1.5, seed=seed, regex=REGEX) for seed in seeds])
    assert all(re.fullmatch(REGEX, output.text) for output in outputs)
    assert len({output.text for output in outputs}) > 5


def test_stop_string_in_real_text(llm, free_alone):
    words = free_alone.split(" ")
    stop = f"{words[6][-2:]} {words[7]}"
    assert free_alone.count(stop) == 1
    (output,) = generate(llm, [STORY], SamplingParams(temperature=0, max_tokens=24, ignore_eos=True, stop=[stop]))
    assert output.text == free_alone[: free_alone.index(stop)]
    assert (output.finish_reason, output.stop_reason) == ("stop", stop)


@pytest.mark.parametrize(
    "constraint",
    [{"json": {"type": "no such type"}}, {"regex": "("}, {"grammar": "root ::= missing"}],
    ids=["schema", "regex", "grammar"],
)
def test_impossible_constraints_are_refused_and_the_engine_goes_on(llm, free_alone, constraint):
    with pytest.raises(ValueError, match=r"(?i)grammar|regex|schema"):
        generate(llm, [PROMPT], constrained(0.0, **constraint))
    assert generate(llm, [STORY], free())[0].text == free_alone


def test_constraints_of_two_backends_on_one_engine(llm, free_alone):
    """For `multipleOf` vLLM chooses another backend than xgrammar; but one engine has one backend, its first request's.

    A constraint that the engine's backend cannot keep must be refused or kept, never dropped.
    """
    thousands = {"type": "integer", "multipleOf": 1000, "minimum": 1, "maximum": 9999}
    (code,) = generate(llm, ["A code: "], constrained(0.0, regex=REGEX))
    assert re.fullmatch(REGEX, code.text)
    try:
        (number,) = generate(llm, ["A number: "], constrained(0.0, json=thousands))
    except ValueError as refusal:
        if "backend" not in str(refusal):
            raise
    else:
        jsonschema.validate(json.loads(number.text), thousands)
    assert generate(llm, [STORY], free())[0].text == free_alone
