"""Inputs and metadata of a plain decode step: every request computes exactly one token.

vLLM's general path stages a dozen host arrays one by one and derives the device inputs with a chain of small operators.
For the step that serving runs nearly always, everything the device needs follows from three integers per request
(position, index into the last step's samples, token), so they are staged in one pinned buffer, copied once, and turned
into input ids, positions, sequence lengths and slots by one operator.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from vllm.v1.attention.backends.utils import PAD_SLOT_ID
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, SlidingWindowSpec

import ascend_kernels
from vllm_ascend.attention.metadata import AscendAttentionMetadata

if TYPE_CHECKING:
    from vllm_ascend.worker.model_runner import AscendModelRunner

FIELDS = 3
"""Integers per request: position, source in the last samples, token."""


class _Views:
    """Views of the persistent buffers for one padded batch size; made once, because slicing costs host time."""

    def __init__(self, step: DecodeStep, rows: int) -> None:
        runner = step.runner
        count = FIELDS * rows
        # Of its own: a step that is staged again for more rows must not write where the first copy may still read.
        self.staged_cpu = torch.zeros(count, dtype=torch.int32, pin_memory=runner.pin_memory)
        self.staged_np = self.staged_cpu.numpy().reshape(FIELDS, rows)
        self.staged_flat = step.staged[:count]
        self.staged = self.staged_flat.view(FIELDS, rows)
        self.input_ids = runner.input_ids.gpu[:rows]
        self.positions = runner.positions[:rows]
        self.seq_lens = runner.seq_lens[:rows]
        tables = runner.input_batch.block_table.block_tables
        self.block_tables = [table.block_table.gpu[:rows] for table in tables]
        self.slots = [table.slot_mapping.gpu[:rows] for table in tables]
        self.slots_by_group = dict(enumerate(self.slots))
        self.slots_by_layer = {name: slots for names, slots in zip(step.layer_names, self.slots) for name in names}
        self.query_ends = list(range(1, rows + 1))


class DecodeStep:
    """Stages plain decode steps of one runner; made when the KV cache is."""

    def __init__(self, runner: AscendModelRunner, kv_cache_config: KVCacheConfig) -> None:
        self.runner = runner
        rows = min(runner.max_num_reqs, runner.max_num_tokens)
        self.staged = torch.zeros(FIELDS * rows, dtype=torch.int32, device=runner.device)
        self.max_rows = rows
        self.layer_names = [group.layer_names for group in kv_cache_config.kv_cache_groups]
        self.arange = np.arange(rows, dtype=np.int64)
        self.optimistic_seq_lens = runner.optimistic_seq_lens_cpu.numpy()
        self._views: dict[int, _Views] = {}
        self.rows = 0
        self.seq_lens: list[int] = []

    @staticmethod
    def supports(runner: AscendModelRunner, kv_cache_config: KVCacheConfig) -> bool:
        """Whether this runner's plain decode steps need nothing but tokens, positions and pages."""
        groups = kv_cache_config.kv_cache_groups
        tables = runner.input_batch.block_table.block_tables
        return (
            bool(groups)
            and len(groups) == len(tables)
            and all(type(group.kv_cache_spec) in (FullAttentionSpec, SlidingWindowSpec) for group in groups)
            and all(len(attn_groups) == 1 for attn_groups in runner.attn_groups)
            and runner.speculative_config is None
            and runner.lora_config is None
            and not runner.is_pooling_model
            and not runner.uses_mrope
            and runner.uses_xdrope_dim == 0
            and not runner.enable_prompt_embeds
            and not runner.is_mm_prefix_lm
            and not runner.model_config.is_encoder_decoder
            and not runner.cache_config.kv_sharing_fast_prefill
            and not runner.parallel_config.use_ubatching
            and runner.parallel_config.pipeline_parallel_size == 1
            and not runner.model_config.enable_return_routed_experts
        )

    def views(self, rows: int) -> _Views:
        views = self._views.get(rows)
        if views is None:
            views = self._views[rows] = _Views(self, rows)
        return views

    def padded_rows(self, num_reqs: int) -> int:
        """The batch size that the step's graph was captured for, or ``num_reqs`` without one.

        Captured sizes above the largest batch are for prefills: the per-request buffers have no rows for them.
        """
        sizes = self.runner.cudagraph_batch_sizes
        index = bisect_left(sizes, num_reqs)
        return sizes[index] if index < len(sizes) and sizes[index] <= self.max_rows else num_reqs

    def prepare(self, num_reqs: int, rows: int | None = None) -> None:
        """Stage the batch and write the device inputs of ``rows`` rows, by default ``padded_rows(num_reqs)``.

        Calling it again for one step gives the same inputs, for another number of padding rows.
        """
        runner, batch = self.runner, self.runner.input_batch
        rows = self.rows = self.padded_rows(num_reqs) if rows is None else rows
        if rows > self.max_rows:
            raise RuntimeError(f"a decode step of {rows} rows; the largest batch has {self.max_rows}")
        views = self.views(rows)
        staged = views.staged_np
        computed = batch.num_computed_tokens_cpu[:num_reqs]
        staged[0, :num_reqs] = computed
        # The buffer still holds the sources of the last batch of this size, which may have had more requests.
        staged[:2, num_reqs:] = -1
        previous_tokens = batch.prev_sampled_token_ids
        complete = previous_tokens is not None and self._stage_sources(staged[1], num_reqs)
        if not complete:
            if previous_tokens is None:
                staged[1, :num_reqs] = -1
            staged[2, :num_reqs] = batch.token_ids_cpu[self.arange[:num_reqs], computed]
        lens = computed + 1
        self.seq_lens = lens.tolist()
        self.optimistic_seq_lens[:num_reqs] = lens
        self.optimistic_seq_lens[num_reqs:] = 0
        # A request that is still reading its prompt yields no token.
        runner.discard_request_mask.np[:num_reqs] = lens < batch.num_tokens_no_spec[:num_reqs]
        views.staged_flat.copy_(views.staged_cpu, non_blocking=True)
        tables = batch.block_table.block_tables
        for table, pages, slots in zip(tables, views.block_tables, views.slots):
            table.commit_block_table(num_reqs)
            ascend_kernels.decode_inputs(
                views.staged,
                previous_tokens,
                pages,
                table.block_size,
                views.input_ids,
                views.positions,
                views.seq_lens,
                slots,
                PAD_SLOT_ID,
            )

    def _stage_sources(self, sources: np.ndarray, num_reqs: int) -> bool:
        """Where each request's token is among the last step's samples; returns whether every request has one."""
        batch = self.runner.input_batch
        previous = batch.prev_req_id_to_index
        if not previous:
            sources[:num_reqs] = -1
            return False
        if previous == batch.req_id_to_index:
            sources[:num_reqs] = self.arange[:num_reqs]
            return True
        sources[:num_reqs] = [previous.get(req_id, -1) for req_id in batch.req_ids]
        return bool(sources[:num_reqs].min() >= 0)

    def metadata(self, num_tokens: int) -> dict[str, Any]:
        """Attention metadata per layer, for ``num_tokens`` query rows (the padded batch, or the requests alone)."""
        views = self.views(num_tokens)
        missing = num_tokens - len(self.seq_lens)
        # A padding row reads one token of whatever page its table row names, and writes nothing.
        seq_lens = self.seq_lens + [1] * missing if missing else self.seq_lens
        result: dict[str, Any] = {}
        for names, pages, slots in zip(self.layer_names, views.block_tables, views.slots):
            metadata = AscendAttentionMetadata(num_tokens, views.query_ends, seq_lens, pages, slots)
            result.update(dict.fromkeys(names, metadata))
        return result
