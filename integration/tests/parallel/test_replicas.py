"""Data parallel replicas give the tokens of one device, whatever the share of the requests each one has."""

import pytest

from .processes import driver

SECONDS = 400

pytestmark = pytest.mark.timeout(SECONDS + 60)


def placed(requests, replicas):
    return [{**request, "replica": replica} for request, replica in zip(requests, replicas, strict=True)]


@pytest.mark.supports("llama", "data parallel, an idle replica", "transformers, greedy tokens")
def test_uneven_and_idle_replicas(tmp_path, case):
    model = case("llama")
    batches = [
        placed(model.requests, [0, 0, 0, 0, 1, 0, 0, 0]),
        placed(model.requests, [1] * 8),
        placed(model.requests, [1, 0] * 4),
        model.requests,
    ]
    with driver(tmp_path, 2, {**model.engine, "data_parallel_size": 2}, batches) as running:
        results = running.wait_for_results(SECONDS)
        assert running.session_when_ended(20) == []
        assert running.process.wait() == 0
    assert results == [model.expected] * 4
