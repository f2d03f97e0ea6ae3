# make demo    lower an example for both targets and show what was gained
# make test    run the tests
# make check   tests, lint, types and import layers
# make test-browser    open the HTML report in chromium (CI runs it, too; needs chromium and chromedriver)
# make bench   the full measurements (hours); ONLY="bench_lower bench_gains" runs some, PEER=/path/to/python adds the field's compiler
# make check-ptoas PTOAS=/path/to/ptoas    put every emitted file through a real assembler
# make check-mlir    put the MLIR of scalar functions through mlir-opt-19 and mlir-translate-19, and run it

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed

.PHONY: demo test test-browser check lint bench check-ptoas check-mlir clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(STAMP)
	mkdir -p build
	$(BIN)/tilegg lower examples/quant_int8.py --arch a2a3 -o build/quant_int8.a2a3.pto
	$(BIN)/tilegg lower examples/quant_int8.py --arch a5 -o build/quant_int8.a5.pto
	$(BIN)/tilegg explain examples/quant_int8.py --arch a5
	$(BIN)/tilegg casts fp32 int8 --arch a5 --mode rint

test: $(STAMP)
	$(BIN)/python -m pytest -c tests/pytest.ini --rootdir tests tests -q -n 2

$(VENV)/.browser: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[browser]"
	touch $@

test-browser: $(VENV)/.browser
	$(BIN)/python -m pytest -c tests/pytest.ini --rootdir tests tests/browser/check_report.py -q

# mypy finds a package by the name of its folder, so it is shown the checkout under the package's name.
lint: $(STAMP)
	$(BIN)/ruff check .
	mkdir -p $(VENV)/types && ln -sfn "$(CURDIR)" $(VENV)/types/tilegg
	cd $(VENV)/types && ../bin/python -m mypy --config-file "$(CURDIR)/pyproject.toml" -p tilegg
	$(BIN)/lint-imports

check: test lint

check-ptoas: $(STAMP)
	PTOAS="$(PTOAS)" $(BIN)/python -m pytest -c tests/pytest.ini --rootdir tests tests/codegen/check_ptoas.py -q -rs

# Needs LLVM's own tools: apt-get install mlir-19-tools llvm-19
check-mlir: $(STAMP)
	command -v mlir-opt-19 mlir-translate-19
	$(BIN)/python -m pytest -c tests/pytest.ini --rootdir tests tests/codegen/test_scalar_mlir.py -q -rs

bench: $(STAMP)
	$(BIN)/python benchmarks/run_all.py $(if $(ONLY),--only $(ONLY)) $(if $(PEER),--peer-python $(PEER) --peer-version "$(PEER_VERSION)")

clean:
	rm -rf build $(VENV) *.egg-info
