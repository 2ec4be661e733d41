"""ACL graphs: capture and replay of model forwards."""
