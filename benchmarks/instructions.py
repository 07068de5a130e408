"""Counts instructions a case with valgrind: the same on a busy machine, where seconds vary twofold.

python benchmarks/instructions.py                 the table, and what has changed against the committed counts
python benchmarks/instructions.py --guard         the same; ends with 1 when a count grew by more than 5 %
python benchmarks/instructions.py --accept        writes the counts to instructions.json

What is counted a case is in `instruction_parts.py`: it is done for two sizes after a first time that warms up, and the
difference is divided by the cases, so that start-up, imports and what is done once do not count. Start-up is counted
apart, as a whole.

Counts depend on the Python and on the packages: the file holds them by Python's version, with the builds that they
were taken with. With other builds of the same version, the committed counts are scaled by what the same plain Python
takes, and may be exceeded by 20 %.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from environments import HERE
from instruction_parts import CALIBRATION, LARGE, SMALL, TEST
from material import write_jsonl, write_one_case_files

COMMITTED = HERE / "instructions.json"
GROWTH, GROWTH_ELSEWHERE = 1.05, 1.20
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = ("click", "pydantic", "PyYAML", "rapidfuzz", "rich")
NOTHING, ONE = "python -c pass", "proctor test, one case, in all"
HOLODECK = "the same, HoloDeck YAML"
START = "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN); from proctor.__main__ import work; work()"
"""The engine's ticks go by the clock and would be counted; valgrind may also bring one after the engine has ended."""
RATIOS = (
    ("one case, start to end", ONE, NOTHING),
    ("one HoloDeck case, start to end", HOLODECK, NOTHING),
    ("proctor test / bare loop with the same store", TEST, "bare loop, stored"),
    ("proctor test / script that writes JSON rows", TEST, "script that writes JSON rows"),
)


def main(arguments: list[str], counter: Callable[[], dict[str, int]] | None = None, file: Path = COMMITTED) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guard", action="store_true", help="end with 1 when a count grew by more than 5 %%")
    parser.add_argument("--accept", action="store_true", help="write the counts down")
    options = parser.parse_args(arguments)
    strict = options.guard and os.environ.get("CI") == "true"
    if counter is None and shutil.which("valgrind") is None:
        print("valgrind is not installed (apt-get install valgrind): instructions are not counted")
        return int(strict)
    counts = (counter or count)()
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    before = known.get(VERSION)
    grown = _tell(counts, before)
    if options.accept:
        known[VERSION] = {"builds": builds(), "counts": counts}
        file.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return int(options.guard and (grown or (before is None and strict)))


def count() -> dict[str, int]:
    """Instructions a case, by what is done; those of start-up and of the bare interpreter as they are."""
    with tempfile.TemporaryDirectory(prefix="proctor-instructions-") as folder, ThreadPoolExecutor(2) as pool:
        here = Path(folder)
        parts = pool.submit(_counted, here / "parts", [str(HERE / "instruction_parts.py"), "work"])
        starts = pool.submit(_starts, here)
        counts = starts.result()
        titles = json.loads((here / "parts" / "work" / "titles.json").read_text()) if parts.result() else []
        between = dict(zip(titles, parts.result(), strict=False))
    for title in dict.fromkeys(title.rpartition(" ")[0] for title in titles if title):
        counts[title] = (between[f"{title} {LARGE}"] - between[f"{title} {SMALL}"]) // (LARGE - SMALL)
    return counts


def builds() -> dict[str, str]:
    """What the counts depend on beside this tree."""
    found = {"python": sys.version}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def _starts(here: Path) -> dict[str, int]:
    """Whole processes, from start to end."""
    for name in ("one", "holodeck", "nothing"):
        (here / name).mkdir()
    native = write_jsonl(here / "one" / "one.jsonl", 1, "echo")
    holodeck = write_one_case_files(here / "holodeck")["HoloDeck YAML"]
    commands = {
        NOTHING: (here / "nothing", ["-c", "pass"]),
        ONE: (native.parent, ["-c", START, "test", native.name]),
        HOLODECK: (holodeck.parent, ["-c", START, "test", holodeck.name, "--agent", "agents.py:echo"]),
    }
    counts = {}
    for title, (folder, arguments) in commands.items():
        environment = _environment()
        subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, check=True, capture_output=True)
        counts[title] = _counted_in_all(folder, arguments)
    return counts


NOT_OURS = ("python -c pass", "plain Python, for calibration")
"""What depends on the environment alone: `site` reads more where more is installed."""


def _tell(counts: dict[str, int], before: dict[str, Any] | None) -> bool:
    """Print the table; whether something grew too much."""
    known, most, scale = _held_against(counts, before)
    grown = False
    print(f"{'instructions':<44}{'now':>14}{'committed':>14}")
    for title, now in counts.items():
        usual = round(known.get(title, 0) * scale)
        share = f"{100 * (now / usual - 1):+.1f} %" if usual else ""
        too_much = bool(usual) and now > usual * most and title not in NOT_OURS
        grown |= too_much
        print(f"{title:<44}{now:>14,}{usual:>14,}  {share}{'  GREW' if too_much else ''}")
    for title, more, less in RATIOS:
        if more in counts and counts.get(less):
            print(f"{title}: {counts[more] / counts[less]:.2f}x")
    if before is None:
        print(f"there are no committed counts for Python {VERSION}: nothing is guarded (--accept writes them)")
    return grown


def _held_against(counts: dict[str, int], before: dict[str, Any] | None) -> tuple[dict[str, int], float, float]:
    """The committed counts, by how much they may be exceeded, and what they are multiplied with first."""
    if before is None:
        return {}, GROWTH, 1.0
    known: dict[str, int] = before["counts"]
    others = [name for name, build in builds().items() if before["builds"].get(name) != build]
    if not others:
        return known, GROWTH, 1.0
    scale = counts[CALIBRATION] / known[CALIBRATION] if known.get(CALIBRATION) and CALIBRATION in counts else 1.0
    print(
        f"another build of {', '.join(others)} than when the counts were taken: they are multiplied by {scale:.3f},"
        f" and {100 * (GROWTH_ELSEWHERE - 1):.0f} % more is allowed"
    )
    return known, GROWTH_ELSEWHERE, scale


def _counted(folder: Path, arguments: list[str]) -> list[int]:
    """Instructions between two calls of `getsid`, in order; what came after the last one is at the end."""
    folder.mkdir(exist_ok=True)
    out = folder / "callgrind"
    _valgrind(["--tool=callgrind", "--dump-before=getsid", f"--callgrind-out-file={out}"], folder, arguments)
    dumps = sorted(folder.glob("callgrind.*"), key=lambda path: int(path.suffix[1:]))
    return [int(re.findall(r"^totals: (\d+)", path.read_text(), re.MULTILINE)[-1]) for path in [*dumps, out]]


def _counted_in_all(folder: Path, arguments: list[str]) -> int:
    """Instructions of a whole process: cachegrind without its cache is the quickest counter."""
    out = folder / "cachegrind"
    _valgrind(["--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={out}"], folder, arguments)
    return int(re.findall(r"^summary: (\d+)", out.read_text(), re.MULTILINE)[-1])


def _valgrind(options: list[str], folder: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        ["valgrind", *options, sys.executable, *arguments],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"counting failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "80"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
