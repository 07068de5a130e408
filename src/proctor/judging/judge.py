"""What is put to a judge (Question), who answers (Judge), and what each call came from and cost (JudgeCall)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from proctor.agents.agent import Usage
from proctor.base.errors import JudgeFailed
from proctor.base.json_data import Json
from proctor.base.records import record
from proctor.cases.suite import NOTHING

if TYPE_CHECKING:
    from pydantic import BaseModel

    ReplyT = TypeVar("ReplyT", bound=BaseModel)
else:
    ReplyT = TypeVar("ReplyT")

Texts = str | Sequence[str]
"""One piece of material: a text, or several that are numbered from 1."""


@record
class Question(Generic[ReplyT]):
    """One thing to ask a judge: our instructions, the material they are about, and the shape of the reply."""

    kind: str
    """What is asked, by name (`statements`, `claims`): the embedded judge knows some kinds, prompts have one each."""
    version: int
    """Raised whenever the instructions or the shape change meaning, so that older verdicts are not taken for new."""
    instructions: str
    material: Mapping[str, Texts]
    """By name, in the order it is shown. All of it is data that nobody vouches for; none of it is ever obeyed."""
    reply: type[ReplyT]
    check: Callable[[ReplyT], str | None] | None = None
    """What is wrong with a reply of the right shape (three verdicts for four statements), or `None`."""


class NeedsModel(JudgeFailed):
    """The embedded judge cannot answer this kind of question; the outcome is `skipped`."""


class Judge(Protocol):
    """Whoever answers questions: a model somewhere, a model here, or the embedded rules."""

    name: str
    """As people write it: `openai:gpt-5-mini`, `local:qwen.gguf`, `embedded`."""

    async def ask(self, question: Question[ReplyT], *, sample: int = 0) -> ReplyT:
        """The reply, validated and checked; `sample` tells independent answers to one question apart.

        Raises `JudgeFailed` when no usable reply can be had, `NeedsModel` when the question is not one it can answer.
        """
        ...


@record
class JudgeCall:
    """One question as it was answered: enough to find the words again, and to add up what they cost."""

    kind: str
    version: int
    model: str
    key: str
    """Under which prompt and reply are kept in the store."""
    cached: bool = False
    usage: Usage = Usage()
    duration_ms: float = 0.0
    sample: int = 0
    repaired: bool = False
    """Whether the first reply did not fit and a second one was asked for."""


@record
class Prompt:
    """What a model is sent."""

    system: str
    user: str
    corrections: tuple[tuple[str, str], ...] = ()
    """Replies that did not fit, each with what was wrong, after which it is asked again."""


@record
class Completion:
    """What a model sent back."""

    text: str
    usage: Usage = Usage()
    model: str = ""
    finish_reason: str | None = None
    probability: float | None = None
    """How likely the model held its verdict to be, where its logits can be seen; of several, the least certain one."""
    choice_probabilities: Mapping[str, Mapping[str, float]] = NOTHING
    """By the JSON pointer of each choice in the reply: how likely each possible choice was."""


class Endpoint(Protocol):
    """A model that completes prompts: one provider's, or a file on this machine."""

    name: str
    address: str
    """Calls with the same address share one limit."""

    @property
    def parameters(self) -> Mapping[str, Json]:
        """Temperature and the like: with the name, what makes two answers comparable."""
        ...

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        """One request, never retried here; raises `EndpointFailed`."""
        ...


class EndpointFailed(JudgeFailed):
    """A request to a model brought no completion."""

    def __init__(
        self, message: str, *, transient: bool = False, limited: bool = False, retry_after: float | None = None
    ) -> None:
        self.transient = transient
        """Worth trying again: a timeout, a lost connection, a server's own fault."""
        self.limited = limited
        """The endpoint asks to be asked less often."""
        self.retry_after = retry_after
        super().__init__(message)


class InvalidReply(JudgeFailed):
    """A judge's reply is not what was asked for; carries the reply as it came."""

    def __init__(self, message: str, reply: str) -> None:
        self.reply = reply
        super().__init__(message)


class JudgeCallStore(Protocol):
    """Where answered questions are kept, by content."""

    def find(self, key: str) -> Mapping[str, Json] | None: ...

    def keep(self, key: str, entry: Mapping[str, Json]) -> None: ...
