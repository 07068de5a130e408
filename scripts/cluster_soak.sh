#!/bin/sh
# A run on a cluster of two hosts that loses workers and its scheduler; the hosts are network namespaces of this machine.
# scripts/cluster_soak.sh [OPTIONS]: 5,000 cases, four workers and 20 kills unless told otherwise (see --help).
# Needs the right to make network namespaces; exits with 77 without it, and with 1 if anything did not hold.
set -eu
cd "$(dirname "$0")/.."
exec "${PYTHON:-.venv/bin/python}" scripts/cluster_soak.py "$@"
