"""A process whose kernels are Triton's, interpreted: serves a tiny model, then tries to capture a launch.

The environment is the caller's: that of test engines, with Triton's interpreter and the log of calls. The argument is
JSON (model folder, prompts, tokens to make); it prints JSON: tokens by settings, and what the capture raised.
"""

import json
import sys

import torch
from vllm import SamplingParams

import ascend_kernels
from ascend_integration.engine.grid import EngineSettings, Graphs
from ascend_integration.engine.in_process import in_process_engine


def served(folder: str, prompts: list[list[int]], tokens: int, graphs: Graphs) -> list[list[int]]:
    """The tokens that an engine makes of every prompt."""
    settings = EngineSettings(graphs, prefix_caching=False, step_tokens=64)
    with in_process_engine(
        folder,
        skip_tokenizer_init=True,
        dtype="float32",
        additional_config={"allow_float32": True},
        **settings.engine_arguments(),
    ) as llm:
        parameters = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        requests = [{"prompt_token_ids": prompt} for prompt in prompts]
        return [list(out.outputs[0].token_ids) for out in llm.generate(requests, parameters, use_tqdm=False)]


def captured() -> str:
    """What a capture says of a launch that it cannot record; empty if nothing."""
    x, weight = torch.ones(4, 8, device="npu"), torch.ones(8, device="npu")
    ascend_kernels.rms_norm(x, weight)
    graph = torch.npu.NPUGraph()
    try:
        with torch.npu.graph(graph):
            ascend_kernels.rms_norm(x, weight)
    except RuntimeError as error:
        return str(error)
    return ""


def main() -> None:
    """Serve eagerly and in graphs, capture, report."""
    folder, prompts, tokens = json.loads(sys.argv[1])
    answers = {str(graphs): served(folder, prompts, tokens, graphs) for graphs in (Graphs.EAGER, Graphs.FULL)}
    print(json.dumps({"answers": answers, "capture": captured()}))


if __name__ == "__main__":
    main()
