"""Measures Proctor and prints one table; exits with 1 if a limit of `limits.py` is exceeded.

    python benchmarks/run.py                       # everything; most of the time goes to the peers
    python benchmarks/run.py --only peers growth   # some groups
    python benchmarks/run.py --peers pydantic-evals --only peers
    python benchmarks/run.py --quick               # small numbers and no peers; shows that the scripts work

The first run installs Proctor and the peers into separate environments, which takes minutes and 2 GB.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from environments import Interpreter, base_install
from gate_accuracy import measure_gate_accuracy
from growth import FACTOR, FULL_SIZE, measure_growth
from install_size import measure_install
from measuring import ContenderFailed
from peers import NAMES, measure_peers
from startup import measure_startup
from table import Row, as_text

GROUPS = ("startup", "peers", "growth", "install", "gate")


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    here = Interpreter(Path(sys.executable))
    proctor = here if options.here else base_install()
    rows: list[Row] = []
    for name in options.only:
        print(f"measuring {name} ...", file=sys.stderr)
        rows += _measure(name, proctor, here, options)
    print(as_text(rows))
    return int(any(row.ok is False for row in rows))


def _measure(name: str, proctor: Interpreter, here: Interpreter, options: argparse.Namespace) -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix=f"proctor-benchmark-{name}-"))
    quick, rounds = options.quick, options.rounds
    peers = () if quick else tuple(options.peers)
    groups: dict[str, Callable[[], list[Row]]] = {
        "startup": lambda: measure_startup(proctor, here, folder, rounds),
        "peers": lambda: measure_peers(proctor, folder, 200 if quick else options.cases, rounds, peers),
        "growth": lambda: measure_growth(proctor, folder, 200 if quick else FULL_SIZE // FACTOR, min(rounds, 2)),
        "install": lambda: measure_install(proctor),
        "gate": lambda: measure_gate_accuracy(20 if quick else 1000),
    }
    try:
        return groups[name]()
    except ContenderFailed as error:
        print(error, file=sys.stderr)
        return [Row(name, "failed; see above", "", False)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers, no peers")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=GROUPS, help="only these groups of rows")
    parser.add_argument("--peers", nargs="+", choices=NAMES, default=NAMES, help="only these peers")
    parser.add_argument("--cases", type=int, default=2000, help="cases of the peers (default 2,000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, of which the best counts (default 3)")
    parser.add_argument("--here", action="store_true", help="measure the Proctor of this interpreter, not a fresh one")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
