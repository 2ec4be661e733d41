"""Patches applied in the process that owns the device, before the model runner is made."""
