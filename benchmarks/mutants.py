"""What the mutants of a run cost: ten of each trial, made and scored, beside scoring the run itself once."""

from __future__ import annotations

import json
from pathlib import Path

from environments import Interpreter
from measuring import Contender, clean_environment, compare, measure
from table import Row, at_most

AGENT = '''"""An agent with one tool call and one sentence."""

from proctor import Reply, ToolCall


def agent(question: str) -> Reply:
    order = int(question.split()[-1])
    call = ToolCall("find_order", {"order_id": f"A-{order}"}, {"total": order * 1.5})
    return Reply(f"Order A-{order} costs ${order * 1.5:,.2f} and is not late.", tool_calls=(call,))
'''
A_TRIAL = 10


def measure_mutants(proctor: Interpreter, folder: Path, cases: int, rounds: int) -> list[Row]:
    (folder / "orders.py").write_text(AGENT, encoding="utf-8")
    _write_suite(folder / "suite.jsonl", cases)
    environment = clean_environment()

    def command(name: str, *words: str) -> Contender:
        return Contender(name, [*proctor.module("proctor"), *words, "-q"], folder, environment)

    measure(command("test", "test", "suite.jsonl", "--name", "made"))
    contenders = [command("rescore", "rescore", "made"), command("mutate", "mutate", "made", "--mutants", str(A_TRIAL))]
    costs = compare(contenders, min(rounds, 3), warm_up=False)
    what = f"{cases:,} trials"
    return [
        at_most(f"{what}: {A_TRIAL} mutants of each / scoring once", costs["mutate"].cpu / costs["rescore"].cpu, 5),
        Row(f"- {what}: CPU of scoring once", f"{costs['rescore'].cpu:.1f} s"),
        Row(f"- {what}: CPU of {A_TRIAL} mutants of each", f"{costs['mutate'].cpu:.1f} s"),
    ]


def _write_suite(path: Path, cases: int) -> None:
    rows: list[dict[str, object]] = [
        {"suite": {"agent": "orders.py:agent", "evaluators": ["ToolTrajectory", "LevenshteinMatch"]}}
    ]
    for order in range(1000, 1000 + cases):
        said = f"Order A-{order} costs ${order * 1.5:,.2f} and is not late."
        call = {"name": "find_order", "args": {"order_id": f"A-{order}"}}
        expected = {"output": said, "tools": [call]}
        rows.append({"id": f"order-{order}", "input": f"Where is order {order}", "expected": expected})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
