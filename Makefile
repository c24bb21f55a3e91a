# Two commands for newcomers: `make test` and `make demo`. Both make the environment first, where it is not there yet.
ROS_DISTRO ?= kilted
PYTHON ?= python3
SCENARIO ?=
PAGE ?=
ARGUMENTS ?=

VENV := $(if $(filter kilted,$(ROS_DISTRO)),.venv,.venv-$(ROS_DISTRO))
BIN := $(VENV)/bin

# A ROS sourced in this shell must not mix with the one in the environment.
unexport PYTHONPATH
unexport AMENT_PREFIX_PATH
unexport CMAKE_PREFIX_PATH
unexport LD_LIBRARY_PATH
unexport _ROS_WHEELS_BOOTSTRAP_COMPLETE

.PHONY: help setup test lint format demo benchmark docs lock clean
.DEFAULT_GOAL := help

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' Makefile | expand -t 18
	@echo "Variables: ROS_DISTRO=kilted|jazzy  PYTHON=python3.11  SCENARIO=name  PAGE=1  ARGUMENTS='for pytest or the benchmarks'"

setup: ## make the environment, or bring it up to date
	@$(PYTHON) tools/environment.py $(ROS_DISTRO) $(VENV)

# Types are checked against the default distribution's packages: numpy 1.26 describes its functions less exactly.
lint: setup ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "not formatted: run \`make format\`"; exit 1; }
	@$(if $(filter kilted,$(ROS_DISTRO)),$(BIN)/mypy,true)

format: setup ## format the code, and write CHANGELOG.rst
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .
	@$(BIN)/python -m tools.changelog

test: lint ## check style and types, then run all tests
	@$(BIN)/python -m pytest -n 2 $(ARGUMENTS)

demo: setup ## the whole story in one command
	@$(BIN)/lift demo $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(PAGE),--page) $(ARGUMENTS)

benchmark: setup ## measure; the results go to docs/results.md
	@$(BIN)/python -m benchmark $(ARGUMENTS)

# pdoc reads docstrings by importing the modules, of which it finds only those in __all__ by itself; it lies beside the
# environment, which stays as its lock says. The messages are compiled, and launch descriptions need an installed ROS.
docs: setup ## API pages from docstrings, in build/docs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target build/pdoc -r requirements/docs.txt
	@PYTHONPATH=build/pdoc $(BIN)/python -m pdoc --docformat google --output-directory build/docs \
		$$(git ls-files 'lift_ros/*.py' | sed '/__main__/d; /launch_description/d; s|/__init__||; s|\.py$$||; s|/|.|g') \
		'!lift_ros.msg' '!lift_ros.graph.launch_description'
	@echo "open build/docs/index.html"

lock: setup ## resolve requirements/*.txt again and pin the result
	@$(BIN)/python -m tools.lock $(ROS_DISTRO)

clean: ## remove the environment and everything that was built
	@rm -rf $(VENV) build install log *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +
