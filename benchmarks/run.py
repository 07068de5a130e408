"""Measures Proctor against its budget and prints one table; ends with 1 when something is over.

python benchmarks/run.py                     everything, peers included; takes about a quarter of an hour
python benchmarks/run.py --quick             small numbers and no peers
python benchmarks/run.py --only engine       one group of rows
python benchmarks/run.py --only adk          beside google-adk[eval], which takes a gigabyte; only if named
python benchmarks/run.py --only holodeck     beside holodeck-ai, which takes 1.6 GB; only if named
python benchmarks/run.py --only peers        all peers in one table, among them promptfoo (1.4 GB); only if named
python benchmarks/run.py --only view         the pages of `proctor view`; needs its extra; only if named
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from adk import measure_adk
from concurrency import measure_concurrency
from engine import measure_engine
from environments import Interpreter, base_install
from gated import measure_gated
from growth import measure_growth
from holodeck import measure_holodeck
from install_size import measure_install
from measuring import Broken
from mutants import measure_mutants
from pytest_run import measure_pytest
from side_by_side import measure_side_by_side
from startup import measure_startup
from table import Row, as_text
from viewing import measure_view
from workers import measure_workers
from wrapping import measure_wrap

GROUPS = ("startup", "engine", "wrap", "growth", "gated", "mutants", "concurrency", "workers", "install", "pytest")
ON_REQUEST = ("adk", "holodeck", "peers", "view")
"""Groups that are measured only if they are named: what they need takes minutes and a gigabyte to install."""


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    proctor = Interpreter(Path(sys.executable)) if options.here else base_install()
    rows: list[Row] = []
    for name in options.only or GROUPS:
        if sys.stderr.isatty():
            print(f"measuring {name} ...", file=sys.stderr)
        rows += _measured(name, proctor, options)
    print(as_text(rows))
    return int(any(row.ok is False for row in rows))


def _measured(name: str, proctor: Interpreter, options: argparse.Namespace) -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix=f"proctor-benchmark-{name}-"))
    quick, rounds = options.quick, options.rounds
    cases = options.cases or (1000 if quick else 2000)
    waiting = min(cases, 200)
    groups: dict[str, Callable[[], list[Row]]] = {
        "startup": lambda: measure_startup(proctor, folder, 3 * rounds),
        "engine": lambda: measure_engine(proctor, folder, cases, rounds, peers=not quick),
        "wrap": lambda: measure_wrap(proctor, folder, cases, rounds, peers=not quick),
        "growth": lambda: measure_growth(proctor, folder, cases, rounds),
        "gated": lambda: measure_gated(proctor, folder, options.cases or (1000 if quick else 10_000), min(rounds, 2)),
        "mutants": lambda: measure_mutants(proctor, folder, cases, rounds),
        "concurrency": lambda: measure_concurrency(proctor, folder, waiting, rounds),
        "workers": lambda: measure_workers(folder, rounds),
        "install": lambda: measure_install(proctor),
        "pytest": lambda: measure_pytest(proctor if options.here else None, folder, rounds, peers=not quick),
        "holodeck": lambda: measure_holodeck(proctor, folder, cases, rounds, peers=not quick),
        "view": lambda: measure_view(folder, [options.cases] if options.cases else [100, 10_000, 50_000]),
        "peers": lambda: measure_side_by_side(proctor, folder, options.cases or 500, rounds, peers=not quick),
        "adk": lambda: measure_adk(proctor, folder, options.cases or 500, rounds, peers=not quick),
    }
    try:
        return groups[name]()
    except Broken as error:
        print(error, file=sys.stderr)
        return [Row(name, "broke; see above", "", False)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers, no peers")
    parser.add_argument("--only", nargs="+", choices=GROUPS + ON_REQUEST, help="only these groups of rows")
    parser.add_argument("--cases", type=int, help="how many cases (2,000; with --quick 1,000)")
    parser.add_argument("--rounds", type=int, default=None, help="rounds, of which the best counts (5; with --quick 2)")
    parser.add_argument("--here", action="store_true", help="measure the Proctor of this interpreter, not a fresh one")
    options = parser.parse_args(arguments)
    if options.cases is not None and options.cases < 2:
        parser.error("--cases must be at least 2")
    options.rounds = options.rounds or (2 if options.quick else 5)
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
