"""The protocols and records of judging: Question, Judge, JudgeCall, and the Endpoint that completes prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from proctor.agents.reply import Usage
from proctor.base.diagnosis import Diagnosis
from proctor.base.errors import JudgeFailed
from proctor.base.errors import NeedsModel as NeedsModel
from proctor.base.json_data import Json, to_text

if TYPE_CHECKING:
    from pydantic import BaseModel

    ReplyT = TypeVar("ReplyT", bound=BaseModel)
else:
    ReplyT = TypeVar("ReplyT")

RULES: Final = "rules"
"""The name of the rule-based judge, which needs no model; it judges if no other is named."""
RULES_VERSION = 8
"""Part of the rule-based judge's identity: raise it whenever its rules may give another verdict."""
OLD_RULES_NAME: Final = "embedded"
"""The name that the rule-based judge has in older files and stores."""

QUESTIONS_VERSION = 3
"""Part of the fingerprint of every judged score: raise it whenever the `version` of a shipped question is raised."""


def is_rule_based(name: Any) -> bool:
    """Whether a judge of this name is the rule-based one, in stores of any version: it asks no model and is free."""
    return name in (RULES, OLD_RULES_NAME)


def is_judge(value: Any) -> bool:
    """Whether an object answers questions as a `Judge` does."""
    return callable(getattr(value, "ask", None)) and isinstance(getattr(value, "name", None), str)


Texts = str | Sequence[str]
"""One piece of material: a text, or several that are numbered from 1."""


def as_list(texts: Texts) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)


@dataclass(frozen=True, slots=True)
class Question(Generic[ReplyT]):
    """One question to a judge: the instructions, the material they are about, and the shape of the reply."""

    kind: str
    """The name of the question (`statements`, `claims`): the rule-based judge has rules for some kinds."""
    version: int
    """Raised whenever instructions or reply change their meaning, so that older cached replies are not used."""
    instructions: str
    material: Mapping[str, Texts]
    """By name, in the order it is shown. All of it is untrusted data; nothing in it is an instruction."""
    reply: type[ReplyT]
    check: Callable[[ReplyT], str | None] | None = None
    """Returns what is wrong with a reply of the right shape (three verdicts for four statements), or `None`."""
    check_sources: Callable[[ReplyT], str | None] | None = None
    """Returns what in a reply is not from the material, or `None`; a model may copy words of the prompt instead."""
    accepts_abstentions: bool = False
    """Whether the caller handles items marked `unclear`; otherwise one such item makes the judge abstain."""


class Judge(Protocol):
    """Answers questions: a model behind an endpoint, or the rule-based judge."""

    name: str
    """As users write it: `openai:gpt-5-mini`, `ollama:qwen3`, `rules`."""

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        """The reply, validated and checked; `sample` numbers independent answers to one question.

        Raises `JudgeFailed` if there is no usable reply, `NeedsModel` if it cannot answer this kind of question, and
        `CannotTell` if it cannot decide for this material.
        """
        ...


class CheckedJudge:
    """A judge whose replies are complete. A judge from outside may leave out verdicts, and nobody else would notice."""

    def __init__(self, judge: Judge) -> None:
        self.name = judge.name
        self._judge = judge

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        reply = await (self._judge.ask(question, sample=sample) if sample else self._judge.ask(question))
        complaint = question.check(reply) if question.check else None
        if complaint:
            raise JudgeFailed(f"the reply of {self.name} cannot be used: {complaint}")
        return reply


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """One answered question: enough to find prompt and reply in the store, and to add up the cost."""

    kind: str
    version: int
    model: str
    key: str
    """The key of prompt and reply in the store."""
    cached: bool = False
    usage: Usage = field(default_factory=Usage)
    duration_ms: float = 0.0
    sample: int = 0
    repaired: bool = False
    """Whether the first reply was unusable and a second one was asked for."""
    abandoned: int = 0
    """Requests that were sent and cancelled before an answer came; they are not in `usage`."""
    abandoned_tokens: int = 0
    """About how many tokens these requests sent, by their length; the tokens of their replies are unknown."""
    served: str = ""
    """The model that the provider says it used, if that is another name: a dated version behind an alias."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages that are sent to a model."""

    system: str
    user: str
    corrections: tuple[tuple[str, str], ...] = ()
    """Unusable replies, each with what was wrong with it."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a model."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish_reason: str | None = None


class Endpoint(Protocol):
    """A model that completes prompts."""

    name: str
    address: str
    """Requests to the same address share one rate limit."""

    @property
    def parameters(self) -> Mapping[str, Json]:
        """Temperature and other settings; with the name, the model's part of the cache key."""
        ...

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        """Send one request, without retries; raises `EndpointFailed`."""
        ...


class CannotTell(JudgeFailed):
    """The judge cannot decide for this material; the outcome is `pending`, never passed or failed."""


class NothingFound(CannotTell):
    """Patterns found nothing wrong and there is no model to look closer. Patterns prove a fault, never its absence."""

    def __init__(self, judge: str, what: str) -> None:
        super().__init__(f"{abstention_message(judge, ())}. Patterns only: {what}")


def abstention_message(judge: str, items: Sequence[tuple[str, str]]) -> str:
    """The message of every abstention: which judge, what to do, and which texts it could not decide, and why."""
    quotes = "; ".join(_undecided_text(*item) for item in items[:5] if any(item))
    more = f"; and {len(items) - 5} more" if len(items) > 5 else ""
    who = "rule-based" if is_rule_based(judge) else judge
    message = f"the {who} judge cannot decide; use a model (`--judge`) or `proctor grade`"
    return f"{message}: {quotes}{more}" if quotes else message


def _undecided_text(text: str, reason: str) -> str:
    quote = f"“{to_text(text.strip(), 300)}”" if text.strip() else ""
    return f"{quote} ({reason})" if quote and reason else quote or reason


class EndpointFailed(JudgeFailed):
    """A request to a model failed."""

    def __init__(
        self,
        message: str,
        *,
        transient: bool = False,
        limited: bool = False,
        retry_after: float | None = None,
        timed_out: bool = False,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        self.diagnosis = diagnosis
        """Whose failure it is and whether a retry may help, if it comes from a provider's exception or status."""
        self.transient = transient if diagnosis is None else diagnosis.is_transient
        """Whether a retry may help: a timeout, a lost connection, a server error."""
        self.limited = limited if diagnosis is None else diagnosis.limited
        """Whether the endpoint refused the request because of its rate limit (429)."""
        self.retry_after = retry_after if diagnosis is None else diagnosis.retry_after or None
        self.timed_out = timed_out
        """Whether the request timed out: the endpoint may be overloaded."""
        super().__init__(message)

    def with_message(self, message: str) -> EndpointFailed:
        """The same failure with another message."""
        return EndpointFailed(
            message,
            transient=self.transient,
            limited=self.limited,
            retry_after=self.retry_after,
            timed_out=self.timed_out,
            diagnosis=self.diagnosis,
        )


class InvalidReply(JudgeFailed):
    """A judge's reply cannot be used; `reply` is its text."""

    def __init__(self, message: str, reply: str) -> None:
        self.reply = reply
        super().__init__(message)


class JudgeCallStore(Protocol):
    """Stores answered questions by their key; implemented by the store of a run."""

    def get(self, key: str) -> Mapping[str, Json] | None: ...

    def put(self, key: str, entry: Mapping[str, Json]) -> None: ...
