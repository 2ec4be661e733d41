"""A worker that dies ends the engine with an error that names it, and everything else with it."""

import time

import psutil
import pytest

from .processes import driver

SECONDS_TO_START = 400
SECONDS_TO_FAIL = 90

pytestmark = pytest.mark.timeout(SECONDS_TO_START + SECONDS_TO_FAIL + 60)


@pytest.mark.parametrize("rank", [1])
def test_killed_worker(tmp_path, case, rank):
    model = case("llama")
    engine = {**model.engine, "tensor_parallel_size": 2}
    with driver(tmp_path, 2, engine, [model.requests], endless=True) as running:
        assert running.wait_for_results(SECONDS_TO_START) == [model.expected]
        workers = [process for process in running.session() if f"Worker_TP{rank}" in " ".join(process.cmdline())]
        assert len(workers) == 1
        started = running.session()
        assert len(started) >= 4  # driver, engine core and two workers
        killed_at = time.monotonic()
        workers[0].kill()
        status = running.process.wait(timeout=SECONDS_TO_FAIL)
        seconds = time.monotonic() - killed_at
        assert running.session_when_ended(20) == []
        log = running.log.read_text()
    assert status == 1
    assert seconds < SECONDS_TO_FAIL
    assert f"Worker proc VllmWorker-{rank} died unexpectedly, shutting down executor." in log
    assert "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue." in log
    # The engine reports what failed, not what it stumbled over afterwards.
    assert "KeyError" not in log
    # Also what left the session; a zombie has ended and waits for whoever adopted it to look.
    assert [process for process in started if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
