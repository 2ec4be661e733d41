# SPDX-License-Identifier: Apache-2.0
"""Attention references: one softmax (``core``), and the layouts, lengths, masks and caches that operators describe."""
