"""Memory by its addresses: tables of them, and how pieces of it are handed to programs."""
