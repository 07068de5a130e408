"""Counts instructions a case with valgrind's callgrind: the same on a busy machine, where seconds vary twofold.

python benchmarks/instructions.py                 the table, and what has changed against the committed counts
python benchmarks/instructions.py --guard         the same; ends with 1 when a count grew by more than 5 %
python benchmarks/instructions.py --accept        writes the counts to instructions.json

One process does everything in turn under callgrind, and calls `getsid` between two parts: callgrind writes its count at
each. What is done is done for two sizes after a first run that warms up, and the difference is divided by the cases:
start-up, imports and what is done once do not count. Start-up is counted apart, as a whole.

Counts depend on the Python: the file holds them by its version, and a version that is not in it is not guarded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from environments import HERE
from material import pixie_dataset, question, write_agents, write_jsonl

COMMITTED = HERE / "instructions.json"
GROWTH = 1.05
SMALL, LARGE = 10, 60
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guard", action="store_true", help="end with 1 when a count grew by more than 5 %%")
    parser.add_argument("--accept", action="store_true", help="write the counts down")
    parser.add_argument("--measured", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measured:
        return _do_everything(Path(options.measured))
    if shutil.which("valgrind") is None:
        print("valgrind is not installed (apt-get install valgrind): instructions are not counted")
        return int(bool(os.environ.get("CI")) and options.guard)
    counts = count()
    known = json.loads(COMMITTED.read_text(encoding="utf-8")) if COMMITTED.is_file() else {}
    grown = _tell(counts, known.get(VERSION, {}))
    if options.accept:
        known[VERSION] = counts
        COMMITTED.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return int(options.guard and grown)


def count() -> dict[str, int]:
    """Instructions a case, by what is done; those of start-up and of the bare interpreter as they are."""
    with tempfile.TemporaryDirectory(prefix="proctor-instructions-") as folder:
        here = Path(folder)
        nothing = _totals(here, ["-c", "pass"])[0]
        (here / "one").mkdir()
        suite = write_jsonl(here / "one" / "one.jsonl", 1, "echo")
        run = "import sys; from proctor.cli import main; sys.exit(main())"
        _plainly(suite.parent, ["-c", run, "test", suite.name])  # compiles the modules
        one = _totals(suite.parent, ["-c", run, "test", suite.name])[0]
        parts = _totals(here, [str(Path(__file__).resolve()), "--measured", "work"])
        titles = json.loads((here / "work" / "titles.json").read_text(encoding="utf-8"))
        between = dict(zip(titles, parts, strict=False))
    counts = {"python -c pass": nothing, "proctor test, one case, in all": one}
    for title in dict.fromkeys(title.rpartition(" ")[0] for title in titles if title):
        counts[title] = (between[f"{title} {LARGE}"] - between[f"{title} {SMALL}"]) // (LARGE - SMALL)
    return counts


def _tell(counts: dict[str, int], known: dict[str, int]) -> bool:
    """Print the table; whether something grew too much."""
    grown = False
    print(f"{'instructions':<44}{'now':>14}{'committed':>14}")
    for title, now in counts.items():
        before = known.get(title)
        share = f"{100 * (now / before - 1):+.1f} %" if before else ""
        too_much = bool(before) and now > before * GROWTH
        grown |= too_much
        print(f"{title:<44}{now:>14,}{before or 0:>14,}  {share}{'  GREW' if too_much else ''}")
    times = counts["proctor test, one case, in all"] / counts["python -c pass"]
    print(f"one case starts and ends in {times:.1f} times the instructions of the bare interpreter")
    if not known:
        print(f"there are no committed counts for Python {VERSION}: nothing is guarded")
    return grown


def _plainly(folder: Path, arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], cwd=folder, env=_environment(), check=True, capture_output=True)


def _totals(folder: Path, arguments: list[str]) -> list[int]:
    """Instructions between two calls of `getsid`, in order; what came after the last one is at the end."""
    out = folder / "callgrind"
    for old in folder.glob("callgrind*"):
        old.unlink()
    valgrind = ["valgrind", "--tool=callgrind", "--dump-before=getsid", f"--callgrind-out-file={out}"]
    done = subprocess.run(
        [*valgrind, sys.executable, *arguments], cwd=folder, env=_environment(), capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"counting failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    dumps = sorted(folder.glob("callgrind.*"), key=lambda path: int(path.suffix[1:]))
    return [int(re.findall(r"^totals: (\d+)", path.read_text(), re.MULTILINE)[-1]) for path in [*dumps, out]]


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "PYTHONHASHSEED": "0", "NO_COLOR": "1", "COLUMNS": "80"}


def _do_everything(folder: Path) -> int:
    """Runs under callgrind: each part once small to warm up, then in two sizes with a mark after each."""
    folder.mkdir()
    os.chdir(folder)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # the engine's ticks go by the clock, and would be counted
    titles: list[str] = []
    for title, work in _parts():
        prepared = [work(size) for size in (SMALL, SMALL, LARGE)]
        for step, (size, do) in enumerate(zip((SMALL, SMALL, LARGE), prepared, strict=True)):
            os.getsid(0)
            do()
            os.getsid(0)
            titles += ["", f"{title} {size}" if step else ""]
    Path("titles.json").write_text(json.dumps(titles), encoding="utf-8")
    return 0


def _parts() -> Iterator[tuple[str, Callable[[int], Callable[[], object]]]]:
    yield "proctor test, stored", _test
    for title, write in _SUITES.items():
        yield f"read {title}", lambda size, write=write: _read(write(size))
    yield "show as JSON", _show
    for name, parameters, answer in _EVALUATED:
        yield f"score {name}", lambda size, row=(name, parameters, answer): _score(size, *row)


def _test(size: int) -> Callable[[], object]:
    path = write_jsonl(Path(f"suite-{size}.jsonl"), size, "echo")
    return lambda: _command("test", path.name, "--store", f"store-{size}-{len(list(Path().iterdir()))}")


def _show(size: int) -> Callable[[], object]:
    path = write_jsonl(Path(f"shown-{size}.jsonl"), size, "echo")
    store = f"shown-{size}-{len(list(Path().iterdir()))}"
    _command("test", path.name, "--store", store)
    return lambda: _command("show", "--store", store, "--json", "shown.json")


def _command(*words: str) -> None:
    import contextlib
    import io

    from proctor.cli import main as proctor

    sys.argv = ["proctor", *words]
    code: object = 0
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = proctor()
        except SystemExit as ended:
            code = ended.code
    if code not in (0, None):
        raise SystemExit(f"{words}: exit code {code}")


def _read(path: Path) -> Callable[[], object]:
    from proctor.cases.formats.loading import load

    return lambda: load([str(path)])


def _score(size: int, name: str, parameters: dict[str, object], answer: str) -> Callable[[], object]:
    import proctor.evaluators as evaluators
    from proctor.evaluators import Evaluable

    evaluator = getattr(evaluators, name)(**parameters)
    rows = [Evaluable(eval_input="What?", eval_output=f"{answer} {n}", expectation=answer) for n in range(size)]
    return lambda: [evaluator(row) for row in rows]


def _written(name: str, text: str) -> Path:
    write_agents(Path())
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def _yaml(size: int) -> Path:
    rows = [f"  - {{id: case-{n}, input: {question(n)!r}, expected: {question(n)!r}}}" for n in range(size)]
    return _written(f"native-{size}.yaml", "\n".join(["agent: agents.py:echo", "cases:", *rows]) + "\n")


def _pixie(size: int) -> Path:
    dataset = pixie_dataset([question(n) for n in range(size)], "agents.py:echo_object")
    return _written(f"pixie-{size}.json", json.dumps(dataset))


def _adk(size: int) -> Path:
    def part(text: str) -> dict[str, object]:
        return {"parts": [{"text": text}]}

    cases = [
        {
            "eval_id": f"case-{n}",
            "conversation": [{"user_content": part(question(n)), "final_response": part(question(n))}],
        }
        for n in range(size)
    ]
    return _written(f"adk-{size}.evalset.json", json.dumps({"eval_set_id": "set", "eval_cases": cases}))


def _holodeck(size: int) -> Path:
    head = "name: agent\nmodel: {provider: openai, name: gpt-4o}\ninstructions: {inline: Answer.}\ntest_cases:\n"
    rows = [f"  - {{name: case {n}, input: {question(n)!r}, ground_truth: {question(n)!r}}}" for n in range(size)]
    return _written(f"holodeck-{size}.yaml", head + "\n".join(rows) + "\n")


_SUITES: dict[str, Callable[[int], Path]] = {
    "JSON Lines": lambda size: write_jsonl(Path(f"lines-{size}.jsonl"), size, "echo"),
    "native YAML": _yaml,
    "pixie JSON": _pixie,
    "ADK JSON": _adk,
    "HoloDeck YAML": _holodeck,
}
_EVALUATED: tuple[tuple[str, dict[str, object], str], ...] = (
    ("ExactMatch", {}, "Your order has shipped"),
    ("Contains", {"all_of": ["shipped", "Monday"]}, "Your order has shipped and arrives on Monday"),
    ("LevenshteinMatch", {}, "Your order has shipped and arrives on Monday"),
    ("ROUGE", {}, "Your order has shipped and arrives on Monday"),
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
