"""Low-rank adapters: several in a batch, chosen per row."""
