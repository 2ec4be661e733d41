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


def main(job_path: Path) -> None:
    """Serve the job's batches one after the other and write the tokens of each request."""
    job = json.loads(job_path.read_text())
    replicas = job["engine"].get("data_parallel_size", 1)
    tokens = asyncio.run(serve_replicas(job)) if replicas > 1 else serve(job)
    Path(job["results"]).write_text(json.dumps(tokens))


def serve(job: dict[str, Any]) -> list[list[list[int]]]:
    """All batches on one engine; then, if the job says so, one request that goes on until the engine fails."""
    from vllm import LLM, SamplingParams

    llm = LLM(**job["engine"])

    def tokens_of(batch: list[Request]) -> list[list[int]]:
        prompts = [{"prompt_token_ids": request["prompt"]} for request in batch]
        outputs = llm.generate(prompts, [SamplingParams(**request["parameters"]) for request in batch], use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]

    tokens = [tokens_of(batch) for batch in job["batches"]]
    if job["endless"]:
        Path(job["results"]).write_text(json.dumps(tokens))
        while True:
            tokens_of(job["batches"][0])
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
