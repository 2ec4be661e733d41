"""Tensor and pipeline parallel engines give the tokens of one device, and end without leftovers."""

import pytest
from vllm import SamplingParams

from ascend_integration.engine.in_process import generate, in_process_engine

from .processes import driver

# From start to results; an idle machine takes a tenth of it, one that runs other tests as well may take most of it.
SECONDS = 400

pytestmark = pytest.mark.timeout(SECONDS + 60)


EXPERT_PARALLEL = {"tensor_parallel_size": 2, "enable_expert_parallel": True}
ALL_TO_ALL = {"allow_float32": True, "moe": {"exchange": "all_to_all"}}


def shows(family: str, feature: str) -> pytest.MarkDecorator:
    return pytest.mark.supports(family, feature, "transformers, greedy tokens")


@pytest.mark.parametrize(
    ("family", "parallel"),
    [
        pytest.param(
            "llama",
            {"tensor_parallel_size": 2},
            marks=shows("llama", "tensor parallel, 2 ranks, full graphs, vocabulary of a prime size"),
        ),
        pytest.param(
            "qwen3", {"pipeline_parallel_size": 2}, marks=shows("qwen3", "pipeline parallel, 2 ranks, full graphs")
        ),
        # Both ranks hold the one key-value head.
        pytest.param("llama-mqa", {"tensor_parallel_size": 2}, marks=pytest.mark.slow),
        pytest.param("gemma3", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}, marks=pytest.mark.slow),
        pytest.param("glm4-moe", {"tensor_parallel_size": 2}, marks=pytest.mark.slow),
        # Data parallel replicas with expert parallelism are in the fast suite.
        pytest.param("gpt-oss", EXPERT_PARALLEL, marks=pytest.mark.slow),
        pytest.param("glm4-moe", {**EXPERT_PARALLEL, "additional_config": ALL_TO_ALL}, marks=pytest.mark.slow),
    ],
    ids=["tensor", "pipeline", "tensor-one-head", "tensor-and-pipeline", "tensor-of-experts", "expert", "all-to-all"],
)
def test_tokens_are_those_of_one_device(tmp_path, case, family, parallel):
    model = case(family)
    drawn = [
        {"prompt": request["prompt"], "parameters": {"temperature": 1.0, "seed": seed, "max_tokens": 12, **limits}}
        for seed, (request, limits) in enumerate(
            zip(
                model.requests,
                [{}, {"top_k": 5}, {"top_k": 400}, {"top_k": 10_000}, {"top_p": 0.9}, {"min_p": 0.1}, {}, {"n": 1}],
                strict=True,
            )
        )
    ]
    devices = parallel.get("tensor_parallel_size", 1) * parallel.get("pipeline_parallel_size", 1)
    engine = {**model.engine, **parallel}
    reversed_requests = model.requests[::-1]
    with driver(tmp_path, devices, engine, [model.requests, reversed_requests, drawn]) as running:
        greedy, greedy_reversed, random = running.wait_for_results(SECONDS)
        assert running.session_when_ended(20) == []
        assert running.process.wait() == 0
    assert greedy == model.expected
    assert greedy_reversed == model.expected[::-1]
    arguments = dict(model.engine)
    with in_process_engine(arguments.pop("model"), **arguments) as one_device:
        outputs = generate(
            one_device,
            [request["prompt"] for request in drawn],
            [SamplingParams(**request["parameters"]) for request in drawn],
        )
    assert random == [list(output.outputs[0].token_ids) for output in outputs]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "seed"), [("check", 0), ("random", 0), ("random", 1), ("random", 2)], ids=lambda value: str(value)
)
def test_ranks_order_their_streams(tmp_path, case, monkeypatch, order, seed):
    """Every process of the engine checks its uses of memory, or runs its work in a random legal order."""
    monkeypatch.setenv("ASCEND_SIM_ORDER", order)
    monkeypatch.setenv("ASCEND_SIM_SEED", str(seed))
    model = case("llama")
    with driver(tmp_path, 2, {**model.engine, "tensor_parallel_size": 2}, [model.requests]) as running:
        (greedy,) = running.wait_for_results(SECONDS)
        assert running.session_when_ended(20) == []
    assert greedy == model.expected
