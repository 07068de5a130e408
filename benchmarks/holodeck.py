"""An agent.yaml with BLEU and ROUGE, beside HoloDeck's own TestExecutor on the same file and backend.

The backend repeats the reference answer, so that what is left is the framework and its metrics. Both read the file, run
its tests one after another and write their Markdown report. HoloDeck takes at most 1,000 tests from a file; its script
repeats them in memory. The peer's environment is 1.6 GB; it is made only when this group is asked for by name.
"""

from __future__ import annotations

import json
from pathlib import Path

from environments import HERE, Interpreter, installed_version, peer
from measuring import Contender, Cost, clean_environment, compare
from table import Row

PEER = "holodeck-ai"
MOST = 1000
"""How many tests HoloDeck takes from a file."""


def agent(cases: int) -> dict[str, object]:
    """As small as HoloDeck accepts it; the model is never asked."""
    return {
        "name": "desk",
        "model": {"provider": "ollama", "name": "none", "endpoint": "http://127.0.0.1:9", "api_key": "none"},
        "instructions": {"inline": "Answer."},
        "evaluations": {
            "metrics": [{"type": "standard", "metric": name, "threshold": 0.5} for name in ("bleu", "rouge")]
        },
        "test_cases": [
            {"name": f"case {n}", "input": answer(n), "ground_truth": answer(n), "expected_tools": ["look_up"]}
            for n in range(cases)
        ],
    }


def answer(number: int) -> str:
    return f"The balance of account {number} is 100 euros and it was opened on the first day of the year"


def measure_holodeck(proctor: Interpreter, folder: Path, cases: int, rounds: int, *, peers: bool) -> list[Row]:
    (folder / "agent.yaml").write_text(json.dumps(agent(min(cases, MOST))), encoding="utf-8")
    contenders = _contenders("proctor", proctor, "drive_holodeck.py", folder, cases)
    other = peer(PEER) if peers else None
    title = f"{PEER} {installed_version(other, PEER)}" if other is not None else PEER
    if other is not None:
        contenders += _contenders(title, other, "peers/drive_holodeck.py", folder, cases)
    costs = compare(contenders, rounds)
    rows = _against(costs, title, cases) if other is not None else []
    if peers and other is None:
        rows.append(Row(f"- {PEER}", "not installed"))
    return rows + [_told(name, costs, cases) for name in dict.fromkeys(key.partition("|")[0] for key in costs)]


def _contenders(title: str, interpreter: Interpreter, script: str, folder: Path, cases: int) -> list[Contender]:
    command = [str(interpreter.python), str(HERE / script), "agent.yaml"]
    return [Contender(f"{title}|{n}", [*command, str(n)], folder, clean_environment()) for n in (1, cases)]


def _per_case(costs: dict[str, Cost], name: str, cases: int) -> float:
    """CPU milliseconds of one more case."""
    return (costs[f"{name}|{cases}"].cpu - costs[f"{name}|1"].cpu) / (cases - 1) * 1000


def _told(name: str, costs: dict[str, Cost], cases: int) -> Row:
    first, all_ = costs[f"{name}|1"], costs[f"{name}|{cases}"]
    return Row(
        f"- {cases} tests with BLEU and ROUGE: {name}",
        f"{_per_case(costs, name, cases):.2f} ms a case, {first.cpu:.2f} s to start with one case, "
        f"{all_.peak_kb / 1024:.0f} MB at most",
    )


def _against(costs: dict[str, Cost], title: str, cases: int) -> list[Row]:
    marginal = _per_case(costs, "proctor", cases) / _per_case(costs, title, cases)
    start = costs["proctor|1"].cpu / costs[f"{title}|1"].cpu
    memory = costs[f"proctor|{cases}"].peak_kb / costs[f"{title}|{cases}"].peak_kb
    return [
        Row(f"same agent.yaml / {title}: CPU a case", f"{marginal:.3f}x", "less than 1x", marginal < 1),
        Row(f"same agent.yaml / {title}: CPU to start", f"{start:.2f}x", "less than 1x", start < 1),
        Row(f"same agent.yaml / {title}: peak memory", f"{memory:.2f}x", "less than 1x", memory < 1),
    ]
