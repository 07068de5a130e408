#!/bin/sh
# A standing attack: kills, load, a full disk, fuzzed inputs and hostile inputs, for as long as asked.
# scripts/soak.sh [MINUTES [KILLS [INPUTS]]]: an hour, 200 kills and a million inputs unless told otherwise.
# Prints the table of docs/reliability.md; exits with 1 if anything did not hold.
set -eu
cd "$(dirname "$0")/.."
exec "${PYTHON:-.venv/bin/python}" scripts/soak.py "${1:-60}" "${2:-200}" "${3:-1000000}"
