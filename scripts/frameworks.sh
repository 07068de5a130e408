#!/bin/sh
# Runs the tests of each framework's adapter with the real package, in an environment of its own: some of these packages
# refuse to live together, and none of them is needed to work on anything else.
#   frameworks.sh            all of them
#   frameworks.sh agno adk   only these
set -eu

packages() {
    case "$1" in
    google_adk) echo "google-adk" ;;
    langchain) echo "langchain langgraph" ;;
    openai_agents) echo "openai-agents" ;;
    *) return 1 ;;
    esac
}

[ $# -gt 0 ] || set -- google_adk langchain openai_agents
for name in "$@"; do
    wanted=$(packages "$name") || { echo "no framework $name" >&2; exit 2; }
    echo "$name: $wanted"
    venv=".venv-frameworks/$name"
    [ -x "$venv/bin/python" ] || "$PYTHON" -m venv "$venv"
    # shellcheck disable=SC2086  the packages are words
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable . pytest hypothesis $wanted
    "$venv/bin/python" -m pytest "tests/frameworks/test_framework_$name.py"
done
