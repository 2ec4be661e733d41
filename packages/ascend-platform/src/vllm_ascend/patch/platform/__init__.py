"""Patches applied in every process, before a configuration is made."""
