"""Standalone operators for LLM inference on Ascend NPUs.

Each operator is a torch library operator in the namespace ``ascend_kernels``, with a plain torch definition beside its
Triton kernel. The environment variable ``ASCEND_KERNELS_BACKEND`` chooses what devices run; see
:mod:`ascend_kernels.backend`.
"""

from ascend_kernels.ops.activation.dynamic_quant import dynamic_quant
from ascend_kernels.ops.activation.gelu import gelu
from ascend_kernels.ops.activation.gelu_and_mul import gelu_and_mul
from ascend_kernels.ops.activation.muls_add import muls_add
from ascend_kernels.ops.activation.swiglu import swiglu
from ascend_kernels.ops.activation.swiglu_quant import swiglu_quant
from ascend_kernels.ops.activation.swiglustep import swiglustep
from ascend_kernels.ops.attention.merge_attention import merge_attention
from ascend_kernels.ops.attention.paged_decode_attention import paged_decode_attention
from ascend_kernels.ops.attention.varlen_attention import varlen_attention
from ascend_kernels.ops.batch_invariant.invariant_matmul import invariant_linear, invariant_matmul
from ascend_kernels.ops.batch_invariant.invariant_rows import (
    invariant_log_softmax,
    invariant_mean,
    invariant_rms_norm,
    invariant_softmax,
)
from ascend_kernels.ops.batch_invariant.mode import batch_invariant
from ascend_kernels.ops.fla.chunk_delta_h import chunk_delta_h, chunk_transition
from ascend_kernels.ops.fla.chunk_index import chunk_index
from ascend_kernels.ops.fla.chunk_local_cumsum import chunk_local_cumsum
from ascend_kernels.ops.fla.chunk_o import chunk_o
from ascend_kernels.ops.fla.gated_delta_rule import gated_delta_rule
from ascend_kernels.ops.fla.gdn_gating import gdn_gating
from ascend_kernels.ops.fla.l2norm import l2norm
from ascend_kernels.ops.fla.qkvzba_split import qkvzba_split
from ascend_kernels.ops.fla.recurrent_delta_rule import recurrent_delta_rule, recurrent_delta_rule_update
from ascend_kernels.ops.fla.scaled_dot_kkt import scaled_dot_kkt
from ascend_kernels.ops.fla.solve_tril import solve_tril
from ascend_kernels.ops.fla.wy_fast import wy_fast
from ascend_kernels.ops.inputs.decode_inputs import decode_inputs
from ascend_kernels.ops.inputs.slot_mapping import slot_mapping
from ascend_kernels.ops.kda.chunk_kda import chunk_kda
from ascend_kernels.ops.kda.kda_gate import kda_gate
from ascend_kernels.ops.lora.lora_expand import lora_expand
from ascend_kernels.ops.lora.lora_shrink import lora_shrink
from ascend_kernels.ops.mamba.causal_conv1d import causal_conv1d, causal_conv1d_update
from ascend_kernels.ops.mamba.lightning_attention import lightning_attention, lightning_attention_update
from ascend_kernels.ops.mamba.state_copy import state_copy
from ascend_kernels.ops.memory.batched_memcpy import batched_copy, batched_memcpy
from ascend_kernels.ops.memory.context_parallel_metadata import context_parallel_metadata
from ascend_kernels.ops.memory.kv_block_copy import kv_block_copy
from ascend_kernels.ops.memory.kv_block_zero import kv_block_zero
from ascend_kernels.ops.moe.expert_positions import expert_positions
from ascend_kernels.ops.moe.grouped_matmul import grouped_matmul, pack_int4
from ascend_kernels.ops.moe.moe_permute import moe_permute
from ascend_kernels.ops.moe.moe_unpermute import moe_unpermute
from ascend_kernels.ops.moe.topk_routing import topk_routing
from ascend_kernels.ops.norm.add_rms_norm import add_rms_norm
from ascend_kernels.ops.norm.layer_norm_gated import layer_norm_gated
from ascend_kernels.ops.norm.qk_square_means import qk_square_means
from ascend_kernels.ops.norm.rms_norm import rms_norm
from ascend_kernels.ops.norm.split_qkv_norm_rope import split_qkv_norm_rope
from ascend_kernels.ops.rope.rope import rope
from ascend_kernels.ops.sampling.bad_words import apply_bad_words
from ascend_kernels.ops.sampling.gumbel_argmax import gumbel_argmax
from ascend_kernels.ops.sampling.penalties import apply_penalties
from ascend_kernels.ops.sampling.probabilities import probabilities
from ascend_kernels.ops.sampling.scale_logits import scale_logits
from ascend_kernels.ops.sampling.token_counts import token_counts
from ascend_kernels.ops.sampling.token_logprobs import token_logprobs
from ascend_kernels.ops.sampling.top_k_top_p import top_k_top_p
from ascend_kernels.ops.sparse.block_sparse_attention import block_sparse_attention
from ascend_kernels.ops.sparse.indexer_scores import indexer_scores, top_blocks
from ascend_kernels.ops.spec_decode.context_parallel_slots import context_parallel_slots
from ascend_kernels.ops.spec_decode.entropy import entropy
from ascend_kernels.ops.spec_decode.expand_requests import expand_requests
from ascend_kernels.ops.spec_decode.next_tokens import next_tokens
from ascend_kernels.ops.spec_decode.ngram_drafts import ngram_drafts
from ascend_kernels.ops.spec_decode.padded_inputs import padded_inputs
from ascend_kernels.ops.spec_decode.parallel_draft_inputs import parallel_draft_inputs
from ascend_kernels.ops.spec_decode.recovered_tokens import recovered_tokens
from ascend_kernels.ops.spec_decode.rejection_sample import rejection_sample
from ascend_kernels.ops.structured.grammar_bitmask import grammar_bitmask

__all__ = [
    "add_rms_norm",
    "apply_bad_words",
    "apply_penalties",
    "batch_invariant",
    "batched_copy",
    "batched_memcpy",
    "block_sparse_attention",
    "causal_conv1d",
    "causal_conv1d_update",
    "chunk_delta_h",
    "chunk_index",
    "chunk_kda",
    "chunk_local_cumsum",
    "chunk_o",
    "chunk_transition",
    "context_parallel_metadata",
    "context_parallel_slots",
    "decode_inputs",
    "dynamic_quant",
    "entropy",
    "expand_requests",
    "expert_positions",
    "gated_delta_rule",
    "gdn_gating",
    "gelu",
    "gelu_and_mul",
    "grammar_bitmask",
    "grouped_matmul",
    "gumbel_argmax",
    "indexer_scores",
    "invariant_linear",
    "invariant_log_softmax",
    "invariant_matmul",
    "invariant_mean",
    "invariant_rms_norm",
    "invariant_softmax",
    "kda_gate",
    "kv_block_copy",
    "kv_block_zero",
    "l2norm",
    "layer_norm_gated",
    "lightning_attention",
    "lightning_attention_update",
    "lora_expand",
    "lora_shrink",
    "merge_attention",
    "moe_permute",
    "moe_unpermute",
    "muls_add",
    "next_tokens",
    "ngram_drafts",
    "pack_int4",
    "padded_inputs",
    "paged_decode_attention",
    "parallel_draft_inputs",
    "probabilities",
    "qk_square_means",
    "qkvzba_split",
    "recovered_tokens",
    "recurrent_delta_rule",
    "recurrent_delta_rule_update",
    "rejection_sample",
    "rms_norm",
    "rope",
    "scale_logits",
    "scaled_dot_kkt",
    "slot_mapping",
    "solve_tril",
    "split_qkv_norm_rope",
    "state_copy",
    "swiglu",
    "swiglu_quant",
    "swiglustep",
    "token_counts",
    "token_logprobs",
    "top_blocks",
    "top_k_top_p",
    "topk_routing",
    "varlen_attention",
    "wy_fast",
]
