#!/bin/sh
# Runs the tests that put questions to a real model in this process, in an environment of their own: they need a package
# and models of 98 and 491 MB, which nothing else does.
set -eu

venv=".venv-local-model"
[ -x "$venv/bin/python" ] || "$PYTHON" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[local]' pytest hypothesis
model=$("$venv/bin/python" scripts/fetch_small_model.py smollm2)
judge=$("$venv/bin/python" scripts/fetch_small_model.py qwen-0.5b)
PROCTOR_TEST_GGUF="$model" PROCTOR_TEST_JUDGE_GGUF="$judge" "$venv/bin/python" -m pytest -rP tests/judging/test_local_model.py
