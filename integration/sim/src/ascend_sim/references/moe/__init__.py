# SPDX-License-Identifier: Apache-2.0
"""Mixture of experts: choosing experts, sorting tokens by expert, putting results back, exchange between ranks."""
