#!/bin/sh
# Attacks Proctor for an hour (or --minutes N) at low priority, and prints a table of what was tried and what broke.
# The attacks, and what counts as a violation, are in scripts/soak.py.
cd "$(dirname "$0")/.." || exit 2
python=.venv/bin/python
[ -x "$python" ] || python=python3
exec nice -n 15 "$python" scripts/soak.py "$@"
