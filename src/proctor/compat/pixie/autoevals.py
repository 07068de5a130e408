"""Evaluators made of scorers of the `autoevals` package."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from proctor.base.errors import JudgeFailed, UsageError
from proctor.base.fingerprints import source_fingerprint
from proctor.base.json_data import UNSET, fingerprint, to_json
from proctor.base.threads import run_in_thread
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import Evaluation, InvalidScore, NothingToCompare

ASKING = frozenset(("OpenAIScorer", "EmbeddingSimilarity"))
"""The classes of autoevals under which everything that asks a model stands."""

ADDRESSES = ("OPENAI_BASE_URL", "BRAINTRUST_AI_GATEWAY_URL")


def parts_of(scorer: Any) -> list[Any]:
    """A scorer and the scorers it is made of, such as the one that compares the texts in a JSON document."""
    found: list[Any] = []
    waiting = [scorer]
    while waiting:
        part = waiting.pop(0)
        if all(part is not known for known in found):
            found.append(part)
            waiting += [value for value in getattr(part, "__dict__", {}).values() if hasattr(value, "eval_async")]
    return found


def asks_a_model(scorer: Any) -> bool:
    return any(_asks(part) for part in parts_of(scorer))


def require_endpoint(scorer: Any, name: str) -> None:
    """Refuse to ask a model that the user has not named an address for."""
    if global_client() is not None or any(os.environ.get(variable, "").strip() for variable in ADDRESSES):
        return
    if all(_has_address(part) for part in parts_of(scorer) if _asks(part) and is_theirs(type(part))):
        return
    raise JudgeFailed(
        f"{name} asks a language model, and nothing says where: autoevals would send the question, the answer and"
        " OPENAI_API_KEY to gateway.braintrust.dev. Give the scorer a client (client=openai.AsyncOpenAI()), call"
        " autoevals.init(client=...), or set OPENAI_BASE_URL (https://api.openai.com/v1 for OpenAI)"
    )


def is_async_client(scorer: Any) -> bool:
    """Whether the scorer has to be awaited: with a client that is, and without one, as autoevals then makes its own."""
    clients = [client for part in parts_of(scorer) if (client := getattr(part, "client", None)) is not None]
    client = clients[0] if clients else global_client()
    if client is None or getattr(client, "is_async", False):
        return True
    inner = getattr(client, "openai", client)  # `init` does not notice that the client it wraps is async
    return type(inner).__name__.startswith("Async")


def global_client() -> Any:
    """What `autoevals.init(client=...)` has set, if anything."""
    variable = _client_variable()
    return None if variable is None else variable.get(None)


@contextmanager
def using_client(client: Any) -> Iterator[None]:
    """As if `autoevals.init(client=...)` had been called in this context."""
    variable = _client_variable()
    token = variable.set(client)
    try:
        yield
    finally:
        variable.reset(token)


def _client_variable() -> Any:
    return getattr(sys.modules.get("autoevals.oai"), "_client_var", None)


def _asks(part: Any) -> bool:
    said = getattr(part, "needs_judge", None)
    if said is not None:
        return bool(said)
    return any(kind.__name__ in ASKING and is_theirs(kind) for kind in type(part).__mro__)


def _has_address(part: Any) -> bool:
    """A base URL does not count for the RAGAS scorers: they do not pass it on to the embeddings they ask for."""
    if getattr(part, "client", None) is not None:
        return True
    return "base_url" in getattr(part, "extra_args", {}) and not type(part).__module__.endswith(".ragas")


def is_theirs(kind: type) -> bool:
    """Whether a class comes with autoevals."""
    return kind.__module__.partition(".")[0] == "autoevals"


COMPARING = frozenset(
    """Levenshtein ExactMatch NumericDiff JSONDiff ListContains EmbeddingSimilarity AnswerSimilarity AnswerCorrectness
    ContextRecall ContextPrecision ContextEntityRecall""".split()
)
"""Scorers of autoevals that cannot say anything without an expected answer."""


class AutoevalsAdapter:
    """An evaluator made of an autoevals scorer: `AutoevalsAdapter(Levenshtein())`.

    What is expected is the case's expectation; else `expected`; else the case's metadata under `expected_key`.
    """

    def __init__(
        self,
        scorer: Any,
        *,
        expected: Any = UNSET,
        expected_key: str = "expected",
        input_key: str | None = "input",
        extra_metadata_keys: Iterable[str] = (),
        **scorer_kwargs: Any,
    ) -> None:
        self.scorer, self._given = _made(scorer, scorer_kwargs)
        self._expected = expected
        self._expected_key = expected_key
        self._input_key = input_key
        self._metadata_keys = _keys(extra_metadata_keys)
        self._client = global_client()
        """What `autoevals.init` was given: that setting belongs to a context, which a later run does not share."""

    def __repr__(self) -> str:
        return f"AutoevalsAdapter({self.name})"

    @property
    def name(self) -> str:
        return str(self.scorer._name() if hasattr(self.scorer, "_name") else type(self.scorer).__name__)

    @property
    def needs_judge(self) -> bool:
        """Whether the scorer asks a model; a scorer of your own says so itself, with an attribute of this name."""
        return asks_a_model(self.scorer)

    @property
    def version(self) -> str:
        """Changes with the scorer, its settings and what it is given."""
        settings = [self._expected_key, self._input_key, self._metadata_keys, _settled(self._given)]
        return fingerprint(_described(self.scorer), _settled(self._expected), *settings)

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = self._expectation(evaluable)
        given = self._arguments(evaluable)
        with self._client_in_place():
            if self.needs_judge:
                require_endpoint(self.scorer, self.name)
            if self.needs_judge and is_async_client(self.scorer):
                score = await self.scorer.eval_async(evaluable.output, expected, **given)
            else:
                score = await run_in_thread(self.scorer.eval, evaluable.output, expected, **given)
        return _evaluation(score, self.name)

    def _expectation(self, evaluable: Evaluable) -> Any:
        metadata = evaluable.eval_metadata or {}
        choices = (evaluable.expectation, self._expected, metadata.get(self._expected_key))
        found = next((choice for choice in choices if choice is not UNSET and choice is not None), None)
        if found is None and evaluable.expectation is UNSET and self._expected is UNSET and _compares(self.scorer):
            raise NothingToCompare(f"{self.name} compares with an expectation and the case has none")
        return found

    def _arguments(self, evaluable: Evaluable) -> dict[str, Any]:
        metadata = evaluable.eval_metadata or {}
        found = {} if self._input_key is None else {self._input_key: evaluable.input}
        if "context" in self._metadata_keys and evaluable.retrieval_context is not None:
            found["context"] = list(evaluable.retrieval_context)
        found |= {key: metadata[key] for key in self._metadata_keys if key in metadata}
        return found | self._given

    @contextmanager
    def _client_in_place(self) -> Iterator[None]:
        if self._client is None or global_client() is not None:
            yield
            return
        with using_client(self._client):
            yield


def _made(scorer: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """An instance, and what is left for each call: a class takes those arguments that its constructor names."""
    if not callable(getattr(scorer, "eval", None)) or not callable(getattr(scorer, "eval_async", None)):
        raise UsageError(f"AutoevalsAdapter takes a scorer of autoevals, which {scorer!r} is not")
    if isinstance(scorer, type):
        named = inspect.signature(scorer).parameters.values()
        names = {p.name for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        own = {name: value for name, value in given.items() if name in names}
        return scorer(**own), {name: value for name, value in given.items() if name not in own}
    return scorer, given


def _keys(keys: Iterable[str]) -> tuple[str, ...]:
    found = tuple(keys)
    if isinstance(keys, str) or not all(isinstance(key, str) for key in found):
        raise UsageError(f"extra_metadata_keys must be a list of names, not {keys!r}")
    return found


def _compares(scorer: Any) -> bool:
    """Whether nothing can be said without an expected answer; prompts of autoevals are looked into."""
    if "expected" in getattr(scorer, "_partial_args", dict)():
        return False
    messages = getattr(scorer, "messages", None)
    if isinstance(messages, list):
        return any("{{expected" in str(message.get("content", "")).replace(" ", "") for message in messages)
    return any(kind.__name__ in COMPARING and is_theirs(kind) for kind in type(scorer).__mro__)


def _evaluation(score: Any, name: str) -> Evaluation:
    if not hasattr(score, "score"):
        raise InvalidScore(f"{name} returned {type(score).__name__}; a scorer of autoevals returns a Score")
    if getattr(score, "error", None) is not None:
        raise score.error
    if score.score is None:
        raise NothingToCompare(f"{name} gave no score")
    metadata = dict(getattr(score, "metadata", None) or {})
    rationale = metadata.get("rationale")
    reasoning = str(rationale) if rationale else f"{score.name}: {float(score.score):.4g}"
    return Evaluation(score.score, reasoning, {**metadata, "scorer_name": score.name})


def _described(scorer: Any) -> list[Any]:
    """Each part of a scorer with its plain settings: clients and other live objects differ from process to process."""
    described: list[Any] = []
    for part in parts_of(scorer):
        kind = type(part)
        source = _their_version() if is_theirs(kind) else source_fingerprint(part)
        settings = {key: _settled(value) for key, value in sorted(vars(part).items()) if key != "client"}
        described.append([f"{kind.__module__}.{kind.__qualname__}", source, settings])
    return described


def _their_version() -> str:
    try:
        return metadata.version("autoevals")
    except metadata.PackageNotFoundError:
        return ""


def _settled(value: Any) -> Any:
    """Data as it is; of anything else only its kind, which is all that stays the same."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return to_json(value)
    if isinstance(value, dict):
        return {str(key): _settled(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_settled(item) for item in value]
    return type(value).__qualname__
