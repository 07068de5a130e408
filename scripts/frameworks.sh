#!/bin/sh
# Runs the tests of each framework's adapter with the real package, in an environment of its own: some of these packages
# refuse to live together, and none of them is needed to work on anything else.
#   frameworks.sh                   the usual ones, which `make test` has time for
#   frameworks.sh all               every one; claude-agent-sdk alone brings a program of 366 MB
#   frameworks.sh agno google_adk   only these
set -eu

packages() {
    case "$1" in
    agno) echo "agno openai" ;;
    claude_agent_sdk) echo "claude-agent-sdk" ;;
    google_adk) echo "google-adk" ;;
    langchain) echo "langchain langgraph" ;;
    llama_index) echo "llama-index-core" ;;
    openai_agents) echo "openai-agents" ;;
    smolagents) echo "smolagents" ;;
    *) return 1 ;;
    esac
}

usual="google_adk openai_agents langchain"
# shellcheck disable=SC2086  the names are words
[ $# -gt 0 ] || set -- $usual
# shellcheck disable=SC2086
[ "$1" != all ] || set -- $usual agno llama_index smolagents claude_agent_sdk
for name in "$@"; do
    wanted=$(packages "$name") || { echo "no framework $name" >&2; exit 2; }
    echo "$name: $wanted"
    venv=".venv-frameworks/$name"
    # shellcheck disable=SC2086  the packages are words
    sh scripts/install.sh "$PYTHON" "$venv" --editable . pytest hypothesis $wanted
    "$venv/bin/python" -m pytest tests/agents/frameworks/test_framework_"$name"*.py
    [ "$name" != langchain ] || "$venv/bin/python" -m pytest tests/docs/test_docs.py -k langgraph
    "$venv/bin/python" -m pytest tests/cli/test_cli_init.py -k "passes and $name or template_of_$name"
done
