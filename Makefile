# Two commands to begin with: `make demo` and `make test`. Each makes the environment .venv first, if need be.

PYTHON ?= python3

CHECKS := lint format types layers lock dependencies size patches lowering
SUITES := sim kernels platform moe e2e packaging

.PHONY: help demo test test-full test-models test-upstream support-matrix test-kernels-stock lower-kernels env wheels fix clean $(CHECKS:%=check-%) $(SUITES:%=test-%)

help:
	@echo "make demo        chat with a small model that vLLM serves on a simulated NPU"
	@echo "make test        every check and test, as CI runs them"
	@echo "make test-NAME   one suite: $(SUITES)"
	@echo "make check-NAME  one check: $(CHECKS)"
	@echo "make test-models model families and features, as a table with the oracle and the result of each"
	@echo "make support-matrix      write that table's rows to docs/support_matrix.md"
	@echo "make test-upstream       vLLM's own tests, fetched with its source; goes on where it was stopped"
	@echo "make test-full   the tests marked slow too"
	@echo "make test-kernels-stock  the tests of the operators with stock Triton, in an environment of its own"
	@echo "make lower-kernels       every kernel down to memory-planned code for the NPUs, as a table"
	@echo "make wheels      build the wheels of the released packages into dist/"
	@echo "make env         only make or update the environment .venv"
	@echo "make fix         format the sources and mend what the linter can mend"
	@echo "make clean       remove the environment and what was built"

env:
	@$(PYTHON) tools/env.py

demo: env
	@.venv/bin/python -m ascend_integration demo

test: env
	@.venv/bin/python tools/check.py

SUPPORT = .venv/bin/python -m pytest integration/tests --ignore=integration/tests/packaging

test-models: env
	@OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(SUPPORT) -n 2 --dist loadfile --support-table --only-supported

support-matrix: env
	@$(SUPPORT) --collect-only --quiet --write-support-matrix > /dev/null

test-upstream: env
	@.venv/bin/python -m ascend_integration upstream run
	@.venv/bin/python -m ascend_integration upstream report

test-full: env
	@PYTEST_ADDOPTS="-m 'slow or not slow'" .venv/bin/python tools/check.py

test-kernels-stock: env
	@.venv/bin/python tools/stock_triton.py

lower-kernels: env
	@.venv/bin/python -W ignore -m ascend_kernels.lowering

$(CHECKS:%=check-%): check-%: env
	@.venv/bin/python tools/check.py $*

$(SUITES:%=test-%): test-%: env
	@.venv/bin/python tools/check.py $*

wheels: env
	@rm -rf dist
	@for member in packages/* integration/sim; do \
	  (cd $$member && $(CURDIR)/.venv/bin/hatchling build --target wheel --directory $(CURDIR)/dist) || exit 1; \
	done

fix: env
	@.venv/bin/ruff check --fix --quiet || true
	@.venv/bin/ruff format

clean:
	rm -rf .venv dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
