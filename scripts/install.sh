#!/bin/sh
# Installs packages into an environment, which is made if there is none:
#   install.sh PYTHON ENVIRONMENT ARGUMENTS...      install.sh python3 .venv --editable '.[dev]'
# uv takes a fraction of pip's time, and environments share what they have in common. Where uv cannot be had, or does
# not reach what pip is set up to reach, pip does the work.
set -eu
python=$1
environment=$2
shift 2
[ -x "$environment/bin/python" ] || "$python" -m venv --without-pip "$environment"
uv=.venv-uv/bin/uv
[ -x "$uv" ] || "$python" -m pip install --quiet --disable-pip-version-check --no-compile --target .venv-uv uv || true
if [ -x "$uv" ]; then
    "$uv" pip install --quiet --python "$environment/bin/python" "$@" && exit 0
    echo "uv could not install $*; now pip tries" >&2
fi
"$environment/bin/python" -m ensurepip >/dev/null
# Most modules of what is installed are never imported: those that are, are compiled then.
exec "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
