"""Compiled loops over one layer. Loads are [samples, experts] of float64, placements [ranks, slots] of int64.

Compiled code is cached on disk beside the sources, or in the user's cache directory where those cannot be written.
"""
