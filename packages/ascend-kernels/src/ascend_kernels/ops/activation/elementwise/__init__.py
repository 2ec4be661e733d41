"""What the activations share: one kernel over tiles of rows and columns, and its launch plan."""
