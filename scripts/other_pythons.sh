#!/bin/sh
# Runs the tests on each supported Python besides the default one that can be found, each in its own environment.
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

for version in 3.11 3.12 3.13; do
    [ "$version" = "$default" ] && continue
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        echo "Python $version is not on this machine: its tests are not run"
        continue
    fi
    echo "Python $version"
    venv=".venv-$version"
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
    "$venv/bin/python" -m pytest -n 2
done
