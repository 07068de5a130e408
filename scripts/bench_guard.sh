#!/bin/sh
# Counts the instructions of a case with valgrind, and fails when a count grew by more than 5 %. Where valgrind cannot be
# had, one line says so and nothing is counted; with CI=true that is an error.
set -eu

if ! command -v valgrind >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    (apt-get update -qq && apt-get install -y -qq --no-install-recommends valgrind) >/dev/null 2>&1 || true
fi
exec "${PYTHON:-python3}" benchmarks/instructions.py --guard
