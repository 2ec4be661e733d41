"""What the normalisation operators share: one kernel over rows, and its launch plan."""
