"""Runs one engine over several devices in a process of its own: `python driver.py JOB`.

JOB is a JSON file with the engine's arguments, batches of requests and the path for their tokens. The engine is made as
a user makes it: engine core and workers are processes of their own, started the way the platform chooses.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

Request = dict[str, Any]

ENDLESS = 500
"""How often the first batch is sent to keep an engine busy: minutes of work, where a failure takes seconds."""


def main(job_path: Path) -> None:
    """Serve the job's batches one after the other and write the tokens of each request."""
    job = json.loads(job_path.read_text())
    replicas = job["engine"].get("data_parallel_size", 1)
    tokens = asyncio.run(serve_replicas(job)) if replicas > 1 else serve(job)
    hand_over(tokens, Path(job["results"]))


def hand_over(tokens: list[list[list[int]]], results: Path) -> None:
    """Let the results appear in one piece: whoever waits for the file reads it at once."""
    partial = results.with_suffix(".partial")
    partial.write_text(json.dumps(tokens))
    partial.replace(results)


def serve(job: dict[str, Any]) -> list[list[list[int]]]:
    """All batches on one engine; then, if the job says so, requests that keep it busy until it fails.

    Those requests have all been sent when the results appear. From then on the engine's caller only waits for outputs,
    so that is where it meets the failure, never in the middle of sending.
    """
    from vllm import LLM, SamplingParams

    llm = LLM(**job["engine"])

    def send(batch: list[Request]) -> None:
        prompts = [{"prompt_token_ids": request["prompt"]} for request in batch]
        llm.enqueue(prompts, [SamplingParams(**request["parameters"]) for request in batch], use_tqdm=False)

    def receive() -> list[list[int]]:
        return [list(output.outputs[0].token_ids) for output in llm.wait_for_completion(use_tqdm=False)]

    tokens = []
    for batch in job["batches"]:
        send(batch)
        tokens.append(receive())
    if job["endless"]:
        send(job["batches"][0] * ENDLESS)
        hand_over(tokens, Path(job["results"]))
        receive()
        raise AssertionError("the engine served everything; nothing made it fail")
    return tokens


async def serve_replicas(job: dict[str, Any]) -> list[list[list[int]]]:
    """All batches on data parallel replicas; `replica` of a request says which one, none leaves it to vLLM."""
    from vllm import AsyncEngineArgs, SamplingParams
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(AsyncEngineArgs(**job["engine"]))

    async def tokens_of(name: str, request: Request) -> list[int]:
        prompt = {"prompt_token_ids": request["prompt"]}
        parameters = SamplingParams(**request["parameters"])
        tokens: list[int] = []
        async for output in engine.generate(prompt, parameters, name, data_parallel_rank=request.get("replica")):
            tokens = list(output.outputs[0].token_ids)
        return tokens

    try:
        return [
            await asyncio.gather(*(tokens_of(f"{i}-{j}", request) for j, request in enumerate(batch)))
            for i, batch in enumerate(job["batches"])
        ]
    finally:
        engine.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
