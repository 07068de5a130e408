"""Local models as endpoints: a GGUF file, served in this process on loopback only, or a running llama.cpp server.

The reply is constrained to its schema while it is written, and log-probabilities tell how certain each verdict was.
"""

from __future__ import annotations

import atexit
import codecs
import functools
import importlib
import importlib.util
import json
import math
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from proctor.agents.agent import Usage
from proctor.base.errors import UsageError
from proctor.base.json_data import Json, show
from proctor.base.records import record
from proctor.base.secrets import mask
from proctor.base.threads import call_in_thread
from proctor.judging.judge import Completion, EndpointFailed, Prompt
from proctor.judging.logprobs import Token, choice_probabilities
from proctor.judging.prompts import verdict_first, with_short_reasons

if TYPE_CHECKING:
    import ssl

Reasons = Literal["before", "after", "none"]

PACKAGE = "xllamacpp"
THREADS = "PROCTOR_LOCAL_THREADS"
CONTEXT = 8192
"""Tokens of prompt and reply together, unless the user sets another number."""
BATCH = 128
"""Tokens that are read at once; between two batches the server notices that the client has gone."""
MAGIC = b"GGUF"

_STARTING = threading.Lock()

LOCAL = "local:"
LONGEST_REPLY = 1_024
"""Tokens; a small model that begins to repeat itself does not stop on its own."""
LONGEST_REASON = 200
"""Characters; every word of a reason takes time on a machine without a graphics card."""
ALTERNATIVES = 20
SHOWN = 300


@record
class LocalSpec:
    """A model file or the address of a server, with its parameters."""

    source: Path | str
    """A file as `Path`, or an address as text."""
    threads: int | None = None
    context: int | None = None
    slots: int = 1
    """How many requests are answered at once."""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    reasons: Reasons = "after"
    """Whether the reason comes before or after the verdict, or not at all; it takes more time than the verdict."""
    api_key: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return f"{LOCAL}{self.source}"


def known_by_content(named: str) -> str:
    """A judge's name with the hash of its model file instead of the path; the name of a server stays as it is."""
    source = named.strip().removeprefix(LOCAL).strip()
    if source.startswith(("http://", "https://")):
        return named
    try:
        return f"{LOCAL}{content_hash(Path(source).expanduser())}"
    except OSError:
        return named


class LocalEndpoint:
    """A local model. Making one checks the file and the package; the model is loaded with the first request."""

    def __init__(self, spec: LocalSpec, *, varied: bool = False) -> None:
        self.name = spec.name
        self.address = str(spec.source)
        self._spec = spec
        self._varied = varied
        self._identity: Json = None
        if isinstance(spec.source, Path):
            require_model(spec.source)
            self._threads = default_threads() if spec.threads is None else spec.threads

    @property
    def parameters(self) -> Mapping[str, Json]:
        """A file is identified by its content and not by its name, a server by what it tells about its model."""
        spec = self._spec
        if self._identity is None:
            file = spec.source if isinstance(spec.source, Path) else None
            self._identity = content_hash(file) if file else _served_model(_base_of(str(spec.source)), self._headers)
        given: dict[str, Json] = {
            "temperature": spec.temperature if spec.temperature is not None or self._varied else 0.0,
            "top_p": spec.top_p,
            "max_tokens": spec.max_tokens or LONGEST_REPLY,
            "reasons": f"{LONGEST_REASON} before" if spec.reasons == "before" else self._longest_reason,
            "model": self._identity or None,
        }
        return {name: value for name, value in given.items() if value is not None}

    async def complete(self, prompt: Prompt, schema: Mapping[str, Json], *, timeout: float) -> Completion:
        """One request whose reply is constrained to the schema, or to a word where that is all there is to choose."""
        body: dict[str, Json] = {
            "messages": _messages(prompt),
            **self._constraint(schema),
            "logprobs": True,
            "top_logprobs": ALTERNATIVES,
            "cache_prompt": True,
        }
        for name in ("temperature", "top_p", "max_tokens"):
            if name in self.parameters:
                body[name] = self.parameters[name]
        try:
            try:
                data = await self._posted(body, timeout)
            except EndpointFailed as failure:
                if "grammar" not in body or "grammar" not in str(failure):
                    raise
                del body["grammar"]
                data = await self._posted(body, timeout)
            return _completion(data, schema)
        except EndpointFailed as failure:
            words = mask(f"{self.name} {failure}", [self._spec.api_key or ""])
            raise failure.saying(words) from None

    def _constraint(self, schema: Mapping[str, Json]) -> Mapping[str, Json]:
        if choice := only_choice(schema):
            # One token instead of a JSON object. Servers without grammars go by the prompt, and the reply is checked.
            return {"grammar": f"root ::= {' | '.join(json.dumps(word) for word in choice[1])}"}
        ordered = schema if self._spec.reasons == "before" else verdict_first(schema)
        constrained = with_short_reasons(ordered, self._longest_reason)
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": constrained}}}

    @property
    def _longest_reason(self) -> int:
        return 0 if self._spec.reasons == "none" else LONGEST_REASON

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._spec.api_key}"} if self._spec.api_key else {}

    async def _posted(self, body: Json, timeout: float) -> Json:
        import httpx2

        # A server on this machine is not asked through a proxy, whatever the environment says.
        try:
            async with httpx2.AsyncClient(
                trust_env=False, verify=_trusted(), headers=self._headers, timeout=timeout
            ) as client:
                response = await client.post(f"{await self._base()}/v1/chat/completions", json=body)
        except httpx2.TimeoutException:
            raise EndpointFailed("did not answer in time", transient=True, timed_out=True) from None
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise EndpointFailed(
                f"cannot be reached, or broke off: {error or type(error).__name__}", transient=True
            ) from None
        try:
            data = response.json()
        except ValueError:
            data = response.text
        if response.status_code != 200:
            raise _refused(response.status_code, data)
        return data

    async def _base(self) -> str:
        spec = self._spec
        if isinstance(spec.source, str):
            return _base_of(spec.source)
        room = spec.context or CONTEXT
        base: str = await call_in_thread(serve, spec.source.resolve(), self._threads, room, spec.slots)
        return base


def _base_of(address: str) -> str:
    return address.rstrip("/").removesuffix("/v1")


def _served_model(base: str, headers: Mapping[str, str]) -> Json:
    """What a server tells about its model: an empty list if nothing, `None` if it does not answer, so that it is asked
    again. The first request will report that."""
    import httpx2

    try:
        with httpx2.Client(trust_env=False, verify=_trusted(), headers=dict(headers), timeout=5.0) as client:
            found = client.get(f"{base}/v1/models").json()["data"][0]
        meta = found.get("meta") or {}
        return [found.get("id"), *(meta.get(name) for name in ("n_params", "size", "n_vocab"))]
    except (httpx2.HTTPError, httpx2.InvalidURL):
        return None
    except (ValueError, LookupError, TypeError, AttributeError):
        return []


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The certificates that are trusted, read once: that takes longer than a request to a server on this machine."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


def only_choice(schema: Mapping[str, Json]) -> tuple[str, list[str]] | None:
    """The field and the words of a reply that is one choice and nothing else."""
    fields = list((schema.get("properties") or {}).items())
    words = fields[0][1].get("enum") if len(fields) == 1 else None
    return (fields[0][0], words) if words else None


def _messages(prompt: Prompt) -> list[Json]:
    said = [{"role": "system", "content": prompt.system}]
    for shown, reply in prompt.examples:
        said += [{"role": "user", "content": shown}, {"role": "assistant", "content": reply}]
    said.append({"role": "user", "content": prompt.user})
    for reply, complaint in prompt.corrections:
        said += [{"role": "assistant", "content": reply}, {"role": "user", "content": complaint}]
    return said


def _refused(status: int, data: Json) -> EndpointFailed:
    error = data.get("error", data) if isinstance(data, Mapping) else data
    error = error if isinstance(error, Mapping) else {"message": error}
    said = show(" ".join(show(error.get("message") or "").split()), SHOWN)
    if error.get("type") == "exceed_context_size_error":
        return EndpointFailed(f"cannot read that much at once: {said}; give it a larger `context`")
    if status in (401, 403):
        return EndpointFailed(
            f"refuses the key: HTTP {status}, {said}; name the variable that holds it with api_key_env"
        )
    if status == 404:
        return EndpointFailed(f"answers to no chat at this address: HTTP 404, {said}")
    limited = status == 429
    return EndpointFailed(f"answered with HTTP {status}, {said}", transient=limited or status >= 500, limited=limited)


def _completion(data: Json, schema: Mapping[str, Json]) -> Completion:
    try:
        choice = data["choices"][0]
        text = choice["message"]["content"] or ""
        usage, logprobs = data.get("usage") or {}, (choice.get("logprobs") or {}).get("content") or []
        text, tokens = _as_object(text, _tokens(logprobs, text), schema)
    except (LookupError, TypeError, AttributeError, ValueError):
        raise EndpointFailed("sent something that is not a completion; check the address") from None
    return Completion(
        text=text,
        usage=Usage(usage.get("prompt_tokens"), usage.get("completion_tokens"), 0.0, 1),
        model=str(data.get("model") or ""),
        finish_reason=choice.get("finish_reason"),
        choice_probabilities=choice_probabilities(text, tokens, schema),
    )


def _as_object(text: str, tokens: list[Token], schema: Mapping[str, Json]) -> tuple[str, list[Token]]:
    """A bare word as the object that it stands for, so that all replies are read alike; other replies as they are."""
    choice = only_choice(schema)
    if choice is None or not (word := text.strip()) or "{" in word:
        return text, tokens
    opening = f'{{"{choice[0]}": "'
    if word != text or json.dumps(word) != f'"{word}"':
        return json.dumps({choice[0]: word}), []
    moved = [Token(token.text, token.start + len(opening), token.alternatives) for token in tokens]
    end = len(opening) + len(word)
    whole = [Token(opening, 0, {opening: 1.0}), *(token for token in moved if token.start < end)]
    return f'{opening}{word}"}}', [*whole, Token('"}', end, {'"}': 1.0})]


def _tokens(logprobs: Sequence[Mapping[str, Json]], text: str) -> list[Token]:
    """The tokens of the reply itself, without those of the reasoning before it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pieces = [decoder.decode(bytes(item["bytes"])) if item.get("bytes") else "" for item in logprobs]
    start = -max(0, "".join(pieces).rfind(text))
    found = []
    for piece, item in zip(pieces, logprobs, strict=True):
        if start >= 0:
            others = {_text(other): math.exp(other["logprob"]) for other in item.get("top_logprobs") or ()}
            found.append(Token(piece, start, {**others, piece: math.exp(item["logprob"])}))
        start += len(piece)
    return found


def _text(token: Mapping[str, Json]) -> str:
    return bytes(token.get("bytes") or ()).decode("utf-8", "replace")


def require_model(path: Path) -> None:
    """Raise `UsageError` with what is missing, before anything is asked."""
    if not path.exists():
        raise UsageError(f"the judge's model file {path} does not exist")
    try:
        with path.open("rb") as file:
            begins = file.read(len(MAGIC))
    except OSError as error:
        raise UsageError(f"the judge's model file {path} cannot be read: {error.strerror or error}") from None
    if begins != MAGIC:
        raise UsageError(f"the judge's model file {path} is not a GGUF file")
    if importlib.util.find_spec(PACKAGE) is None:
        raise UsageError("asking a model file as a judge needs more packages: pip install 'proctor[local]'")


def content_hash(path: Path) -> str:
    """The hash of a model file, read once while size and time of change stay the same."""
    stat = path.stat()
    return _content_hash(path, stat.st_size, stat.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _content_hash(path: Path, size: int, changed: int) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def default_threads() -> int:
    """One for each core of this process; one in CI, where cores are shared and spinning threads slow other jobs."""
    given = os.environ.get(THREADS, "").strip()
    if given:
        if not given.isdecimal() or int(given) < 1:
            raise UsageError(f"{THREADS} must be a number of threads from 1 on, not {given!r}")
        return int(given)
    return 1 if os.environ.get("CI") else _cores()


def _cores() -> int:
    """Physical cores where the system shows them: two threads on one core slow each other in arithmetic."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    siblings = [Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") for number in usable]
    try:
        return max(1, len({path.read_text() for path in siblings}))
    except OSError:
        return max(1, len(usable))


def serve(path: Path, threads: int, context: int, slots: int) -> str:
    """The address of the server for a model, started if necessary. Takes seconds: call it in a thread."""
    with _STARTING:
        address: str = _served(path, threads, context, slots).listening_address
        return address


@functools.cache
def _served(path: Path, threads: int, context: int, slots: int) -> Any:
    xllamacpp: Any = importlib.import_module(PACKAGE)
    options = xllamacpp.CommonParams()
    options.model.path = str(path)
    options.hostnames = ["127.0.0.1"]
    options.port = 0
    options.offline = True
    options.ui = False
    options.endpoint_slots = False
    options.verbosity = -1
    options.n_ctx = context * slots
    options.n_parallel = slots
    options.n_batch = options.n_ubatch = BATCH
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = threads
    try:
        server = xllamacpp.Server(options)
    except Exception as error:
        raise EndpointFailed(f"cannot be loaded: {error} The file may be damaged, or not a model of words.") from None
    atexit.register(stop)
    return server


def stop() -> None:
    """Stop the servers of this process; their threads must not outlive the interpreter."""
    _served.cache_clear()
