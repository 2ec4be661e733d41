"""What the serving worker itself says about its device, through vLLM's worker extension point."""

from typing import Any

import torch


class DeviceReport:
    """Mixed into the worker (`--worker-extension-cls`): adds one method that `/collective_rpc` can call."""

    def demo_device_report(self) -> dict[str, str]:
        """Where the weights are and what that device calls itself."""
        worker: Any = self  # vLLM makes this class a base of its Worker
        weights = {str(parameter.device) for parameter in worker.get_model().parameters()}
        return {"weights_on": ", ".join(sorted(weights)), "name": torch.npu.get_device_name(worker.device)}
