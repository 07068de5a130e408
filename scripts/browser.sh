#!/bin/sh
# Gets what the tests in a browser need: Debian's Chromium, and axe-core for the accessibility checks. Where that cannot
# be had, one line says so and those tests are skipped; with CI=true that is an error.
set -eu

have_browser() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }

have_browser || sh scripts/apt_install.sh chromium fonts-dejavu-core
if [ ! -f .browser/node_modules/axe-core/axe.min.js ] && command -v npm >/dev/null; then
    mkdir -p .browser
    npm install --silent --no-audit --no-fund --prefix .browser axe-core@4 >/dev/null 2>&1 || true
fi

missing=""
have_browser || missing="no Chromium (apt-get install chromium)"
[ -f .browser/node_modules/axe-core/axe.min.js ] || missing="${missing:+$missing, }no axe-core (npm install --prefix .browser axe-core)"
if [ -n "$missing" ]; then
    echo "the tests in a browser are skipped: $missing" >&2
    [ "${CI:-}" != true ] || exit 1
fi
