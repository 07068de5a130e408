"""Use scorers of the `autoevals` package as evaluators."""

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

MODEL_SCORERS = frozenset(("OpenAIScorer", "EmbeddingSimilarity"))
"""The base classes of the autoevals scorers that call a model."""

ADDRESS_VARIABLES = ("OPENAI_BASE_URL", "BRAINTRUST_AI_GATEWAY_URL")
"""The environment variables that name the address of the model."""


def scorer_parts(scorer: Any) -> list[Any]:
    """A scorer and the scorers inside it, such as the one that compares the texts in a JSON document."""
    parts: list[Any] = []
    queue = [scorer]
    while queue:
        part = queue.pop(0)
        if all(part is not other for other in parts):
            parts.append(part)
            queue += [value for value in getattr(part, "__dict__", {}).values() if hasattr(value, "eval_async")]
    return parts


def calls_model(scorer: Any) -> bool:
    """Whether the scorer or one inside it calls a model."""
    return any(_part_calls_model(part) for part in scorer_parts(scorer))


def require_endpoint(scorer: Any, name: str) -> None:
    """Raise if the scorer would call a model at an address that the user has not set."""
    if global_client() is not None or any(os.environ.get(variable, "").strip() for variable in ADDRESS_VARIABLES):
        return
    if all(
        _has_address(part) for part in scorer_parts(scorer) if _part_calls_model(part) and is_from_autoevals(type(part))
    ):
        return
    raise JudgeFailed(
        f"{name} calls a language model, and no address is set: autoevals would send the question, the answer and"
        " OPENAI_API_KEY to gateway.braintrust.dev. Pass a client to the scorer (client=openai.AsyncOpenAI()), call"
        " autoevals.init(client=...), or set OPENAI_BASE_URL (https://api.openai.com/v1 for OpenAI)"
    )


def must_be_awaited(scorer: Any) -> bool:
    """Whether the scorer must be awaited: if its client is async, or if it has none, as autoevals then creates one."""
    clients = [client for part in scorer_parts(scorer) if (client := getattr(part, "client", None)) is not None]
    client = clients[0] if clients else global_client()
    if client is None or getattr(client, "is_async", False):
        return True
    inner = getattr(client, "openai", client)  # `init` does not notice if the client it wraps is async
    return type(inner).__name__.startswith("Async")


def global_client() -> Any:
    """The client set with `autoevals.init(client=...)`, or None."""
    variable = _client_variable()
    return None if variable is None else variable.get(None)


@contextmanager
def using_client(client: Any) -> Iterator[None]:
    """Behave as if `autoevals.init(client=...)` had been called in this context."""
    variable = _client_variable()
    token = variable.set(client)
    try:
        yield
    finally:
        variable.reset(token)


def _client_variable() -> Any:
    return getattr(sys.modules.get("autoevals.oai"), "_client_var", None)


def _part_calls_model(part: Any) -> bool:
    """Whether this scorer calls a model, not counting the scorers inside it."""
    declared = getattr(part, "needs_judge", None)
    if declared is not None:
        return bool(declared)
    return any(kind.__name__ in MODEL_SCORERS and is_from_autoevals(kind) for kind in type(part).__mro__)


def _has_address(part: Any) -> bool:
    """Whether the user has set where this scorer sends its requests.

    A base URL does not count for the RAGAS scorers, because they do not use it for embeddings.
    """
    if getattr(part, "client", None) is not None:
        return True
    return "base_url" in getattr(part, "extra_args", {}) and not type(part).__module__.endswith(".ragas")


def is_from_autoevals(kind: type) -> bool:
    """Whether a class belongs to autoevals."""
    return kind.__module__.partition(".")[0] == "autoevals"


REFERENCE_SCORERS = frozenset(
    """Levenshtein ExactMatch NumericDiff JSONDiff ListContains EmbeddingSimilarity AnswerSimilarity AnswerCorrectness
    ContextRecall ContextPrecision ContextEntityRecall""".split()
)
"""The autoevals scorers that need an expected answer."""


class AutoevalsAdapter:
    """An evaluator that uses an autoevals scorer: `AutoevalsAdapter(Levenshtein())`.

    The expected value is the case's expectation, else `expected`, else the case's metadata under `expected_key`.
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
        self.scorer, self._call_arguments = _instantiate(scorer, scorer_kwargs)
        self._expected = expected
        self._expected_key = expected_key
        self._input_key = input_key
        self._metadata_keys = _check_keys(extra_metadata_keys)
        self._client = global_client()
        """The client from `autoevals.init`, which is set per context and not visible in a later run."""

    def __repr__(self) -> str:
        return f"AutoevalsAdapter({self.name})"

    @property
    def name(self) -> str:
        return str(self.scorer._name() if hasattr(self.scorer, "_name") else type(self.scorer).__name__)

    @property
    def needs_judge(self) -> bool:
        """Whether the scorer calls a model; your own scorer declares it with an attribute of this name."""
        return calls_model(self.scorer)

    @property
    def version(self) -> str:
        """Changes with the scorer, its settings and its arguments."""
        settings = [self._expected_key, self._input_key, self._metadata_keys, _stable(self._call_arguments)]
        return fingerprint(_scorer_settings(self.scorer), _stable(self._expected), *settings)

    async def __call__(self, evaluable: Evaluable) -> Evaluation:
        expected = self._expectation(evaluable)
        arguments = self._arguments(evaluable)
        with self._with_client():
            if self.needs_judge:
                require_endpoint(self.scorer, self.name)
            if not callable(getattr(self.scorer, "eval", None)) or (self.needs_judge and must_be_awaited(self.scorer)):
                score = await self.scorer.eval_async(evaluable.output, expected, **arguments)
            else:
                score = await run_in_thread(self.scorer.eval, evaluable.output, expected, **arguments)
        return _evaluation(score, self.name)

    def _expectation(self, evaluable: Evaluable) -> Any:
        metadata = evaluable.eval_metadata or {}
        choices = (evaluable.expectation, self._expected, metadata.get(self._expected_key))
        expected = next((choice for choice in choices if choice is not UNSET and choice is not None), None)
        if (
            expected is None
            and evaluable.expectation is UNSET
            and self._expected is UNSET
            and _needs_expected(self.scorer)
        ):
            raise NothingToCompare(f"{self.name} needs an expected output")
        return expected

    def _arguments(self, evaluable: Evaluable) -> dict[str, Any]:
        metadata = evaluable.eval_metadata or {}
        arguments = {} if self._input_key is None else {self._input_key: evaluable.input}
        if "context" in self._metadata_keys and evaluable.retrieval_context is not None:
            arguments["context"] = list(evaluable.retrieval_context)
        arguments |= {key: metadata[key] for key in self._metadata_keys if key in metadata}
        return arguments | self._call_arguments

    @contextmanager
    def _with_client(self) -> Iterator[None]:
        if self._client is None or global_client() is not None:
            yield
            return
        with using_client(self._client):
            yield


def _instantiate(scorer: Any, arguments: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The scorer as an instance, and the arguments left for each call.

    A class gets the arguments that its constructor has.
    """
    if not callable(getattr(scorer, "eval", None)) and not callable(getattr(scorer, "eval_async", None)):
        raise UsageError(f"AutoevalsAdapter needs an autoevals scorer with eval() or eval_async(), not {scorer!r}")
    if isinstance(scorer, type):
        parameters = inspect.signature(scorer).parameters.values()
        names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        constructor_arguments = {name: value for name, value in arguments.items() if name in names}
        return scorer(**constructor_arguments), {
            name: value for name, value in arguments.items() if name not in constructor_arguments
        }
    return scorer, arguments


def _check_keys(keys: Iterable[str]) -> tuple[str, ...]:
    names = tuple(keys)
    if isinstance(keys, str) or not all(isinstance(key, str) for key in names):
        raise UsageError(f"extra_metadata_keys must be a list of names, not {keys!r}")
    return names


def _needs_expected(scorer: Any) -> bool:
    """Whether the scorer needs an expected answer; for prompt scorers, whether the prompt contains it."""
    if "expected" in getattr(scorer, "_partial_args", dict)():
        return False
    messages = getattr(scorer, "messages", None)
    if isinstance(messages, list):
        return any("{{expected" in str(message.get("content", "")).replace(" ", "") for message in messages)
    return any(kind.__name__ in REFERENCE_SCORERS and is_from_autoevals(kind) for kind in type(scorer).__mro__)


def _evaluation(score: Any, name: str) -> Evaluation:
    if not hasattr(score, "score"):
        raise InvalidScore(f"{name} returned {type(score).__name__} instead of a Score")
    if getattr(score, "error", None) is not None:
        raise score.error
    if score.score is None:
        raise NothingToCompare(f"{name} returned no score")
    metadata = dict(getattr(score, "metadata", None) or {})
    rationale = metadata.get("rationale")
    reasoning = str(rationale) if rationale else f"{score.name}: {float(score.score):.4g}"
    return Evaluation(score.score, reasoning, {**metadata, "scorer_name": score.name})


def _scorer_settings(scorer: Any) -> list[Any]:
    """Each part of a scorer with its plain settings; clients and other live objects are left out."""
    parts: list[Any] = []
    for part in scorer_parts(scorer):
        kind = type(part)
        source = _autoevals_version() if is_from_autoevals(kind) else source_fingerprint(part)
        settings = {key: _stable(value) for key, value in sorted(vars(part).items()) if key != "client"}
        parts.append([f"{kind.__module__}.{kind.__qualname__}", source, settings])
    return parts


def _autoevals_version() -> str:
    try:
        return metadata.version("autoevals")
    except metadata.PackageNotFoundError:
        return ""


def _stable(value: Any) -> Any:
    """A value that is the same in every process: data as it is, and only the type name of anything else."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return to_json(value)
    if isinstance(value, dict):
        return {str(key): _stable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_stable(item) for item in value]
    return type(value).__qualname__
