"""The demo command, whole and in parts."""
