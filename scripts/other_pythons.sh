#!/bin/sh
# Runs the tests on supported Pythons besides the default one, as far as they can be found, each in its own environment.
#   other_pythons.sh              the newest, with the tests of what depends on the Python: threads, loops, SQLite, files
#   other_pythons.sh 3.12 3.13    these, with all tests
set -eu
default=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
# Where pyenv keeps its versions: beside the shims through which it is called, whatever HOME says.
pyenv=$(dirname "$(dirname "$(command -v "$PYTHON")")")

find_python() {
    for candidate in "python$1" "$pyenv/versions/$1".*/bin/python; do
        if "$candidate" -c pass 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

apart=""
if [ $# -eq 0 ]; then
    set -- 3.13
    for folder in attack benchmarks cases cli compat declared docs evaluators examples judging plugin reporting running/cluster running/mutation viewer; do
        apart="$apart --ignore=tests/$folder"
    done
fi
for version in "$@"; do
    [ "$version" = "$default" ] && continue
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        echo "Python $version is not on this machine: its tests are not run"
        continue
    fi
    echo "Python $version"
    venv=".venv-$version"
    sh scripts/install.sh "$python" "$venv" --editable '.[dev]'
    # What the collector complains of is blamed on whichever test runs then; the default Python is strict about it.
    # shellcheck disable=SC2086  the options are words
    sh scripts/run_tests.sh "$venv/bin/python" -W ignore::pytest.PytestUnraisableExceptionWarning $apart
done
