"""The examining child process: prints one JSON line per stage, so that what came before a crash is known."""

from __future__ import annotations

import json
from typing import Any


def _say(stage: str, answer: dict[str, Any]) -> None:
    print(json.dumps({"stage": stage, "answer": answer}), flush=True)


def _torch() -> dict[str, Any]:
    import torch_npu  # noqa: F401

    from vllm_ascend.doctor.runtime import mapped_library

    return {"runtime_library": mapped_library()}


def _device() -> dict[str, Any]:
    import torch

    from vllm_ascend.plugins import registry
    from vllm_ascend.soc import SocError, identify

    count = torch.npu.device_count()
    if not count:
        return {"count": 0}
    profiles = registry().profiles.values()
    chip, number = torch.npu.get_device_name(0), torch.npu.get_soc_version()
    answer: dict[str, Any] = {"count": count, "chip": chip, "family": None, "problem": None}
    answer["memory_gib"] = torch.npu.get_device_properties(0).total_memory / 2**30
    try:
        answer["family"] = identify(chip, number, profiles).name
    except SocError as error:
        answer["problem"] = str(error)
    return answer


def _components() -> dict[str, Any]:
    from vllm_ascend.plugins import registry

    found = registry()
    loaded = [
        {
            "name": it.name,
            "distribution": it.distribution,
            "version": it.version,
            "claims": [f"{claim.kind} {claim.name}" for claim in it.claims],
        }
        for it in found.components
        if it.loaded
    ]
    problems = [{"who": it.who, "why": it.why, "mend": it.mend} for it in found.problems]
    return {"loaded": loaded, "problems": problems}


def _vllm() -> dict[str, Any]:
    from vllm.platforms import current_platform
    from vllm.triton_utils import HAS_TRITON

    platform = type(current_platform)
    return {"platform": f"{platform.__module__}.{platform.__qualname__}", "has_triton": HAS_TRITON}


def main() -> None:
    """Run the stages in order."""
    _say("torch", _torch())
    _say("device", _device())
    _say("components", _components())
    _say("vllm", _vllm())


if __name__ == "__main__":
    main()
