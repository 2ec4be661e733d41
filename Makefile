PYTHON ?= python3
.PHONY: env
env:
	@$(PYTHON) tools/env.py
