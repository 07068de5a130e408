"""A project whose answers a judge marks, and the judge that marks them: a scripted server that counts its calls."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from judge_server import JudgeServer, ModelRequest

CHECKS = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel

from proctor.evaluators import JudgedEvaluator, answer_text
from proctor.evaluators.evaluation import Evaluation
from proctor.judging.judge import Question


class Mark(BaseModel):
    mark: float
    reason: str = ""


def asked(kind, answer):
    return Question(kind=kind, version=1, instructions="Mark the answer.", material={"answer": answer}, reply=Mark)


@dataclass(frozen=True, kw_only=True)
class Marked(JudgedEvaluator):
    """What the judge makes of an answer."""

    kind: str = "mark"
    version: ClassVar[int] = 1

    async def assess(self, evaluable, judge):
        reply = await judge.ask(asked(self.kind, answer_text(evaluable)))
        return Evaluation(reply.mark, reply.reason)


def good(evaluable):
    return 1.0
'''

AGENT = """
def agent(question):
    return f"the answer to {question}"
"""


def write_project(folder: Path, judge: Any = None, *, cases: int = 3, evaluators: Any = None) -> Path:
    """A suite of `cases`, each answered and marked."""
    (folder / "checks").mkdir(exist_ok=True)
    (folder / "checks" / "marks.py").write_text(CHECKS, encoding="utf-8")
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app" / "desk.py").write_text(AGENT, encoding="utf-8")
    suite = {
        "name": "desk",
        "agent": "app/desk.py:agent",
        **({} if judge is None else {"judge": judge}),
        "evaluators": evaluators or ["checks/marks.py:Marked"],
        "cases": [{"id": f"case-{number}", "input": f"question {number}"} for number in range(1, cases + 1)],
    }
    path = folder / "desk.json"
    path.write_text(json.dumps(suite, indent=1), encoding="utf-8")
    return path


def judge_at(server: JudgeServer, **options: Any) -> dict[str, Any]:
    """The judge that `server` is, as a file names it."""
    return {"model": "openai:scripted", "base_url": server.url, **options}


def marks(asked: ModelRequest, default: float = 1.0) -> dict[str, Any]:
    """A full mark, and the number of the case as the reason."""
    number = re.search(r"question (\d+)", asked.prompt)
    return {"mark": default, "reason": f"case {number.group(1) if number else '?'}"}
