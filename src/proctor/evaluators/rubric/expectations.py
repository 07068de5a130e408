"""What an answer must do and must not do, said in sentences; a judge goes through all of them in one question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from proctor.errors import UsageError
from proctor.evaluators.agent.view import earlier, steps_of
from proctor.evaluators.judged import Judged, answer_text, question_text
from proctor.evaluators.model import Evaluable, Evaluation, NothingToCompare
from proctor.judging.model import Judge, Texts
from proctor.plain import Json

INSTRUCTIONS = (
    "The author of this examination expects certain things of the answer, numbered below. For each, say whether it is "
    "kept: 'yes' or 'no'. 'MUST' is kept if the answer, or what the agent did on the way, does what is said; 'MUST "
    "NOT' is kept if it does not do it. Go by what the answer says and not by how it says it. What only might have "
    "been meant is not done."
)


@dataclass(frozen=True, kw_only=True)
class Expectations(Judged):
    """The answer does all that it must, and nothing that it must not."""

    must: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    default_threshold: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "must", _sentences(self.must, "must"))
        object.__setattr__(self, "must_not", _sentences(self.must_not, "must_not"))

    async def assess(self, evaluable: Evaluable, judge: Judge) -> Evaluation:
        from proctor.evaluators.opinions import in_order, rulings

        items = self._items(evaluable)
        listed = "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
        question = rulings("expectations", f"{INSTRUCTIONS}\n\n{listed}", _material(evaluable), len(items))
        verdicts = in_order(await judge.ask(question))
        found = [
            {"expectation": item, "kept": kept, "reason": reason}
            for item, (kept, reason) in zip(items, verdicts, strict=True)
        ]
        broken = [f"{entry['expectation']} ({entry['reason']})" for entry in found if not entry["kept"]]
        said = f"broken: {'; '.join(broken)}" if broken else "all is kept"
        return Evaluation((len(items) - len(broken)) / len(items), said, {"expectations": found})

    def _items(self, evaluable: Evaluable) -> list[str]:
        """The evaluator's own, then those of the case, then those of the turn, each once."""
        items: dict[str, None] = {}
        for label, key, own in (("MUST", "must", self.must), ("MUST NOT", "must_not", self.must_not)):
            listed = [*own, *_noted(evaluable.eval_metadata, key), *_noted(evaluable.turn_metadata, key)]
            items.update((f"{label}: {sentence}", None) for sentence in listed)
        if not items:
            raise NothingToCompare(
                "needs `must` or `must_not`, here or in the metadata of the case, and there is neither"
            )
        return list(items)


def _material(evaluable: Evaluable) -> dict[str, Texts]:
    material: dict[str, Texts] = {}
    if before := earlier(evaluable):
        material["earlier"] = before
    material["question"] = question_text(evaluable)
    if evaluable.tool_calls:
        material["step"] = steps_of(evaluable.tool_calls)
    return {**material, "answer": answer_text(evaluable)}


def _noted(metadata: Mapping[str, Json] | None, key: str) -> tuple[str, ...]:
    try:
        return _sentences((metadata or {}).get(key) or (), f"metadata: {key}")
    except ValueError as error:
        raise UsageError(str(error)) from None


def _sentences(given: Any, name: str) -> tuple[str, ...]:
    """One sentence or several."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Sequence) or not all(isinstance(item, str) and item.strip() for item in listed):
        raise ValueError(f"{name} must be a sentence or a list of sentences, not {given!r:.80}")
    return tuple(listed)
