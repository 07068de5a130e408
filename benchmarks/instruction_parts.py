"""What `instructions.py` counts: everything in turn in one process, with a mark between two parts.

Each part is done three times, small to warm up, then in two sizes, so that the difference is that of more cases alone.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from material import pixie_dataset, question, write_agents, write_jsonl
from proctor.base import records

SMALL, LARGE = 10, 30
Part = Callable[[int], Callable[[], object]]
"""Prepares a number of cases; what it gives back is counted."""
CALIBRATION, TEST = "plain Python, for calibration", "proctor test, stored"


def main(folder: Path) -> None:
    """Runs under callgrind, which writes a count at each call of `getsid`; the titles of the counts are kept beside."""
    folder.mkdir()
    os.chdir(folder)
    sys.path.insert(0, str(Path.cwd()))
    signal.signal(signal.SIGALRM, signal.SIG_IGN)  # the engine's ticks go by the clock, and would be counted
    records.COMPILED_FROM = 0  # as in a long run: which size makes the instance that compiles a class would be chance
    titles: list[str] = []
    for title, part in parts():
        sizes = (SMALL, SMALL, LARGE)
        for step, (size, do) in enumerate(zip(sizes, [part(size) for size in sizes], strict=True)):
            gc.collect()
            gc.disable()  # when it comes depends on all that was done before, and it takes as much as ten cases
            os.getsid(0)
            do()
            os.getsid(0)
            gc.enable()
            titles += ["", f"{title} {size}" if step else ""]
    Path("titles.json").write_text(json.dumps(titles), encoding="utf-8")


def parts() -> Iterator[tuple[str, Part]]:
    yield CALIBRATION, _calibrate
    yield TEST, _test
    yield "bare loop, stored", lambda size: _bare_loop(size, "store")
    yield "script that writes JSON rows", lambda size: _bare_loop(size, "record")
    yield "store alone", _store
    for title, write in _SUITES.items():
        yield f"read {title}", lambda size, write=write: _read(write(size))
    yield "show", _show
    yield "show as JSON", lambda size: _show(size, "--json", "shown.json")
    for row in _EVALUATED:
        yield f"score {row[0]}", lambda size, row=row: _score(size, *row)


def _test(size: int) -> Callable[[], object]:
    path = write_jsonl(Path(f"suite-{size}.jsonl"), size, "echo")
    return lambda: _command("test", path.name, "--store", f"store-{size}-{len(list(Path().iterdir()))}")


def _calibrate(size: int) -> Callable[[], object]:
    """Plain Python, none of it Proctor's: what this build of the interpreter takes for the same work."""
    rows = [{"id": f"case-{n}", "input": question(n), "scores": [n / 3, {"more": [n] * 20}]} for n in range(size)]
    return lambda: [json.loads(json.dumps({key: row[key] for key in sorted(row)})) for row in rows * 10]


def _bare_loop(size: int, kept: str) -> Callable[[], object]:
    import bare_loop

    path = write_jsonl(Path(f"bare-{size}.jsonl"), size, "echo")
    return lambda: bare_loop.main(str(path), f"bare-{size}-{len(list(Path().iterdir()))}", "sync", "10", kept)


def _store(size: int) -> Callable[[], object]:
    """Trials of a run that are kept once more, in transactions of ten as the engine does."""
    from proctor.results.store import Store

    kept = Store(_kept_run(size))
    trials = list(kept.trials(kept.find_run("last").no))
    store = Store(Path(f"again-{size}-{len(list(Path().iterdir()))}"))
    added = store.add_run(f"again-{size}", "")
    return lambda: [store.add_trials(added, trials[n : n + 10]) for n in range(0, size, 10)]


def _show(size: int, *more: str) -> Callable[[], object]:
    store = str(_kept_run(size))
    return lambda: _command("show", "--store", store, *more)


@functools.cache
def _kept_run(size: int) -> Path:
    """A store with one run in it."""
    path = write_jsonl(Path(f"kept-{size}.jsonl"), size, "echo")
    _command("test", path.name, "--store", f"kept-{size}")
    return Path(f"kept-{size}")


def _command(*words: str) -> None:
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
    from proctor.agents.agent import ToolCall
    from proctor.cases.suite import ExpectedCall
    from proctor.evaluators import Evaluable

    evaluator = getattr(evaluators, name)(**parameters)
    rows = [
        Evaluable(
            eval_input="What?",
            eval_output=f"{answer} {n}",
            expectation=answer,
            tool_calls=[ToolCall(tool, {"order": f"A-{n}"}) for tool in _TOOLS],
            expected_tool_calls=[ExpectedCall(tool, {"order": f"A-{n}"}) for tool in _TOOLS],
        )
        for n in range(size)
    ]
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


_STEPS = [{"name": "find_order", "id": "found"}, {"name": "track", "after": ["found"]}]
_TOOLS = ("find_order", "track", "answer")
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
    ("ExpectedTools", {}, "Your order has shipped"),
    ("Trajectory", {"steps": _STEPS}, "Your order has shipped"),
)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
