"""Data parallel replicas give the tokens of one device, whatever the share of the requests each one has."""

import copy

import pytest

from .processes import driver

SECONDS = 400

pytestmark = pytest.mark.timeout(SECONDS + 60)


EXPERT_PARALLEL = {
    "enable_expert_parallel": True,
    "additional_config": {"allow_float32": True, "moe": {"exchange": "all_to_all", "eplb": {"policy": "random"}}},
    "enable_eplb": True,
    "eplb_config": {"num_redundant_experts": 2, "step_interval": 40, "window_size": 20, "use_async": False},
}


def placed(requests, replicas):
    return [{**request, "replica": replica} for request, replica in zip(requests, replicas, strict=True)]


def shows(family: str, feature: str) -> pytest.MarkDecorator:
    return pytest.mark.supports(family, feature, "transformers, greedy tokens")


@pytest.mark.parametrize(
    ("family", "parallel"),
    [
        pytest.param("llama", {}, marks=shows("llama", "data parallel, an idle replica")),
        # Half of the experts on each replica: an idle one still computes its experts for the other's tokens. Steps from
        # graphs exchange them by all-gather, the others by all-to-all. Experts move after the tenth step.
        pytest.param(
            "glm4-moe",
            EXPERT_PARALLEL,
            marks=[
                shows("glm4-moe", "data and expert parallel, an idle replica"),
                shows("glm4-moe", "experts that move between ranks (--enable-eplb)"),
            ],
        ),
        pytest.param("glm4-moe", {"enable_expert_parallel": True}, marks=pytest.mark.slow),
        # Half of every expert.
        pytest.param("mixtral", {}, marks=pytest.mark.slow),
    ],
    ids=["dense", "expert-parallel", "expert-parallel-all-gather", "experts-in-halves"],
)
def test_uneven_and_idle_replicas(tmp_path, case, family, parallel):
    model = case(family)
    batches = [
        placed(model.requests, [0, 0, 0, 0, 1, 0, 0, 0]),
        placed(model.requests, [1] * 8),
        placed(model.requests, [1, 0] * 4),
        model.requests,
    ]
    engine = copy.deepcopy({**model.engine, **parallel, "data_parallel_size": 2})
    record = tmp_path / "experts.json"
    if balanced := "enable_eplb" in parallel:
        engine["additional_config"]["moe"]["eplb"]["record_file"] = str(record)
    with driver(tmp_path, 2, engine, batches) as running:
        results = running.wait_for_results(SECONDS)
        assert running.session_when_ended(20) == []
        assert running.process.wait() == 0
    assert results == [model.expected] * 4
    assert record.exists() == balanced
