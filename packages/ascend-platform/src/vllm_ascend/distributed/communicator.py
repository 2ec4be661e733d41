"""The device communicator of vLLM's process groups on Ascend.

HCCL is a ``torch.distributed`` backend, so vLLM's base class carries tensor, pipeline and data parallelism. What it
lacks are the variable-length collectives, which HCCL has no single call for.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from vllm.distributed.device_communicators.base_device_communicator import DeviceCommunicatorBase


class AscendCommunicator(DeviceCommunicatorBase):
    """Collectives of one process group over HCCL."""

    def all_gatherv(
        self,
        input_: torch.Tensor | list[torch.Tensor],
        dim: int = 0,
        sizes: list[int] | None = None,
    ) -> torch.Tensor | list[torch.Tensor]:
        """Concatenate the ranks' tensors along dimension 0; ``sizes[r]`` rows come from rank ``r``."""
        if isinstance(input_, list):
            return [self._all_gatherv(tensor, dim, sizes) for tensor in input_]
        return self._all_gatherv(input_, dim, sizes)

    def _all_gatherv(self, tensor: torch.Tensor, dim: int, sizes: list[int] | None) -> torch.Tensor:
        if dim != 0:
            raise ValueError(f"all_gatherv gathers along dimension 0, got dim={dim}")
        if sizes is None:
            return self.all_gather(tensor, dim=0)
        self._check_count("all_gatherv", sizes)
        if sizes[self.rank_in_group] != tensor.shape[0]:
            raise ValueError(
                f"all_gatherv: sizes[{self.rank_in_group}] is {sizes[self.rank_in_group]}, "
                f"but this rank holds {tensor.shape[0]} rows"
            )
        if len(set(sizes)) == 1:
            return self.all_gather(tensor, dim=0)
        # HCCL sends lists of unequal tensors as one broadcast per rank; padded to the longest they are one collective.
        longest = max(sizes)
        padded = tensor.new_empty((longest, *tensor.shape[1:]))
        padded[: tensor.shape[0]] = tensor
        gathered = tensor.new_empty((self.world_size * longest, *tensor.shape[1:]))
        dist.all_gather_into_tensor(gathered, padded, group=self.device_group)
        return torch.cat([part[:size] for part, size in zip(gathered.split(longest), sizes)], dim=0)

    def reduce_scatterv(self, input_: torch.Tensor, dim: int = -1, sizes: list[int] | None = None) -> torch.Tensor:
        """Sum over the ranks and keep this rank's rows of dimension 0; ``sizes[r]`` rows go to rank ``r``."""
        if dim not in (0, -input_.dim()):
            raise ValueError(f"reduce_scatterv scatters along dimension 0, got dim={dim}")
        if sizes is None:
            return self.reduce_scatter(input_, dim=0)
        self._check_count("reduce_scatterv", sizes)
        if sum(sizes) != input_.shape[0]:
            raise ValueError(f"reduce_scatterv: sizes {sizes} do not add up to {input_.shape[0]} rows")
        if len(set(sizes)) == 1:
            return self.reduce_scatter(input_, dim=0)
        # A plain reduction over every row: uneven HCCL reduce-scatter would need padding to the largest part anyway.
        reduced = input_.clone()
        dist.all_reduce(reduced, group=self.device_group)
        return reduced.split(sizes, dim=0)[self.rank_in_group].contiguous()

    def _check_count(self, what: str, sizes: list[int]) -> None:
        if len(sizes) != self.world_size:
            raise ValueError(f"{what}: {len(sizes)} sizes for {self.world_size} ranks; one per rank is needed")
