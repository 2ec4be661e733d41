"""Features of serving that any model can be served with."""
