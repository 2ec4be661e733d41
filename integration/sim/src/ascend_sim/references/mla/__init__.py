# SPDX-License-Identifier: Apache-2.0
"""Preparing queries, latent keys and their caches for attention (multi-head latent attention and fused QKV)."""
