#!/bin/sh
# Counts the instructions of a case with valgrind, and fails when a count grew by more than 5 %. Where valgrind cannot be
# had, one line says so and nothing is counted; with CI=true that is an error.
set -eu

command -v valgrind >/dev/null || sh scripts/apt_install.sh valgrind
exec "${PYTHON:-python3}" benchmarks/instructions.py --guard
