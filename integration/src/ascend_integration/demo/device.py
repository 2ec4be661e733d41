"""Which device the server really computes on, asked from its workers."""

from dataclasses import dataclass

import httpx

from ascend_integration.demo.server import ServerError


@dataclass(frozen=True)
class ServedDevice:
    """`weights_on`: torch devices of the parameters, e.g. `npu:0`; `name`: what the device calls itself."""

    weights_on: str
    name: str

    @property
    def is_npu(self) -> bool:
        return all(device.strip().startswith("npu") for device in self.weights_on.split(","))


def served_device(client: httpx.Client) -> ServedDevice:
    """Ask the workers where their weights are (`DeviceReport`) and return the first one's answer."""
    response = client.post("/collective_rpc", json={"method": "demo_device_report", "timeout": 30})
    if response.status_code != httpx.codes.OK:
        raise ServerError(f"the worker did not report its device: {response.status_code} {response.text}")
    return ServedDevice(**response.json()["results"][0])
