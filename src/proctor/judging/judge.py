"""The protocols and records of judging: Question, Judge, JudgeCall, and the Endpoint that completes prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from proctor.agents.reply import Usage
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
RULES_VERSION = 1
"""Part of the rule-based judge's identity: raise it whenever its rules may come to another verdict."""
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
    """What is asked, by name (`statements`, `claims`): the rule-based judge knows some kinds, prompts have one each."""
    version: int
    """Increased whenever the instructions or the shape change meaning, so that older cached verdicts are not used."""
    instructions: str
    material: Mapping[str, Texts]
    """By name, in the order it is shown. All of it is untrusted data; nothing in it is an instruction."""
    reply: type[ReplyT]
    check: Callable[[ReplyT], str | None] | None = None
    """What is wrong with a reply of the right shape (three verdicts for four statements), or `None`."""
    check_sources: Callable[[ReplyT], str | None] | None = None
    """What in a reply was not taken from the material, or `None`; a model may list the prompt's own words instead."""
    accepts_abstentions: bool = False
    """Whether the asker looks at the mark `unclear` of each item; otherwise one such item makes the judge abstain."""


class Judge(Protocol):
    """Answers questions: a model behind an endpoint, or the rule-based judge."""

    name: str
    """As users write it: `openai:gpt-5-mini`, `ollama:qwen3`, `rules`."""

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        """The reply, validated and checked; `sample` tells independent answers to one question apart.

        Raises `JudgeFailed` when no usable reply can be had, `NeedsModel` when the question is not one it can answer,
        `CannotTell` when it is, and this material does not settle it.
        """
        ...


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
    """Requests that were sent and given up before an answer came; `usage` has nothing of them."""
    abandoned_tokens: int = 0
    """About how many tokens these requests sent, by their length; what was written in reply is not known."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent to a model."""

    system: str
    user: str
    corrections: tuple[tuple[str, str], ...] = ()
    """Unusable replies, each with what was wrong with it."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model sent back."""

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
        """Temperature and the like: with the name, the part of the cache key that belongs to the model."""
        ...

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        """One request, never retried here; raises `EndpointFailed`."""
        ...


class CannotTell(JudgeFailed):
    """The judge read the material and knows that it cannot tell; the outcome is `pending`, never a pass or a fail."""


class NothingFound(CannotTell):
    """Patterns found nothing wrong and there is no model to look closer. Patterns prove a fault, never its absence."""

    def __init__(self, judge: str, what: str) -> None:
        super().__init__(f"{abstention_message(judge, ())}. Patterns only: {what}")


def abstention_message(judge: str, what: Sequence[str]) -> str:
    """The message of every abstention: which judge, what to do, and what it could not decide."""
    placed = "; ".join(f"“{to_text(text.strip(), 300)}”" for text in what[:5] if text.strip())
    more = f"; and {len(what) - 5} more" if len(what) > 5 else ""
    who = "rule-based" if is_rule_based(judge) else judge
    said = f"the {who} judge cannot decide; use a model (`--judge`) or `proctor grade`"
    return f"{said}: {placed}{more}" if placed else said


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
    ) -> None:
        self.transient = transient
        """Worth a retry: a timeout, a lost connection, a server error."""
        self.limited = limited
        """The endpoint refused the request for its rate (429)."""
        self.retry_after = retry_after
        self.timed_out = timed_out
        """No answer came within the time of one request: the endpoint may have more to do than it can."""
        super().__init__(message)

    def with_message(self, message: str) -> EndpointFailed:
        """The same failure in other words."""
        return EndpointFailed(
            message,
            transient=self.transient,
            limited=self.limited,
            retry_after=self.retry_after,
            timed_out=self.timed_out,
        )


class InvalidReply(JudgeFailed):
    """A judge's reply is not what was asked for; holds the reply as it came."""

    def __init__(self, message: str, reply: str) -> None:
        self.reply = reply
        super().__init__(message)


class JudgeCallStore(Protocol):
    """Keeps answered questions by their key; the store of a run implements it."""

    def get(self, key: str) -> Mapping[str, Json] | None: ...

    def put(self, key: str, entry: Mapping[str, Json]) -> None: ...
