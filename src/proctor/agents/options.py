"""How an agent is described in a file: the keys of a mapping, and for HTTP its address, request and answer."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import urlsplit

from proctor.base.environment import expand, variables_in
from proctor.base.errors import UsageError
from proctor.base.fields import kind, nearest
from proctor.base.json_data import UNSET, Json, Selector, parse_selector, show
from proctor.base.records import record
from proctor.base.secrets import is_secret_name
from proctor.cases.suite import NOTHING


class Options:
    """The keys of one mapping; `done` refuses the ones that were not taken."""

    def __init__(self, data: Json, where: str, example: str) -> None:
        self._where = where
        self._example = example
        if not isinstance(data, Mapping):
            raise self.wrong("", f"must be an object, not {kind(data)}")
        self._data = dict(data)
        self._known: list[str] = []

    def take(self, name: str, types: type | tuple[type, ...], noun: str, default: Any = None) -> Any:
        """The value under `name`, of one of `types`; a value of another type is a mistake."""
        self._known.append(name)
        value = self._data.get(name)
        if value is None:
            return default
        allowed = types if isinstance(types, tuple) else (types,)
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise self.wrong(name, f"must be {noun}, not {kind(value)}")
        return value

    def text(self, name: str, default: Any = None) -> Any:
        return self.take(name, str, "text", default)

    def required(self, name: str, types: type | tuple[type, ...], noun: str) -> Any:
        value = self.take(name, types, noun)
        if value is None or value == "" or value == []:
            raise self.wrong("", f"needs {name!r} ({noun})")
        return value

    def texts_by_name(self, name: str) -> dict[str, str]:
        """An object of text values, such as headers or environment variables."""
        given = self.take(name, dict, "an object of texts", {})
        for key, value in given.items():
            if not isinstance(value, str):
                raise self.wrong(f"{name}.{key}", f"must be text, not {kind(value)}")
        return dict(given)

    def wrong(self, name: str, message: str) -> UsageError:
        place = f"{self._where}.{name}" if name else self._where
        return UsageError(f"{place} {message}; write for example {self._example}")

    def done(self) -> None:
        for key in self._data:
            if key not in self._known:
                hint = nearest(str(key), self._known)
                raise UsageError(
                    f"{self._where} has no key {str(key)!r}{hint}; its keys are {', '.join(sorted(self._known))}"
                )


NAMES = ("input", "history", "messages", "state", "session_id", "case", "turn", "trial")
"""What a placeholder may start with; `input`, `state` and `case` can be followed by a path (`{{case.id}}`)."""

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_MAY_LACK = ("state", "case")


class NotInInput(Exception):
    """The template asks for a part of the input that this input does not have."""


@record
class Template:
    """JSON with placeholders, checked: `{"question": "{{input}}", "user": "{{state.user}}"}`.

    A text that is one placeholder becomes the value itself, with its type; inside a longer text the value is written
    out. Values that were filled in are not searched for placeholders again.
    """

    data: Json
    selectors: Mapping[str, Selector]

    @classmethod
    def parse(cls, data: Json) -> Template:
        """Raises `UsageError` for a placeholder that means nothing."""
        selectors: dict[str, Selector] = {}
        for text in _texts(data):
            for name in _PLACEHOLDER.findall(text):
                selectors[name] = _placeholder_selector(name)
        return cls(data, selectors)

    def fill(self, values: Mapping[str, Json]) -> Json:
        """The template with `values`, one for each of `NAMES`, put in."""
        return self._fill(self.data, values)

    def _fill(self, data: Json, values: Mapping[str, Json]) -> Json:
        if isinstance(data, str):
            whole = _PLACEHOLDER.fullmatch(data.strip())
            if whole is not None and whole.group(1) in self.selectors:
                return self._value(whole.group(1), values)
            return _PLACEHOLDER.sub(lambda match: _written(self._value(match.group(1), values)), data)
        if isinstance(data, Mapping):
            return {key: self._fill(item, values) for key, item in data.items()}
        if isinstance(data, list):
            return [self._fill(item, values) for item in data]
        return data

    def _value(self, name: str, values: Mapping[str, Json]) -> Json:
        found = self.selectors[name].find(values)
        if found is UNSET:
            if self.selectors[name].steps[0] in _MAY_LACK:
                return None
            raise NotInInput(f"the request template wants {name}, which the input lacks")
        return found


def _placeholder_selector(name: str) -> Selector:
    try:
        selector = parse_selector(name)
    except UsageError:
        selector = None
    if selector is None or not selector.steps or selector.steps[0] not in NAMES:
        hint = nearest(name, NAMES)
        raise UsageError(
            f"{{{{{name}}}}} is not a placeholder{hint}; use one of {', '.join(NAMES)}, or a path into one"
        )
    return selector


def _written(value: Json) -> str:
    return "" if value is None else show(value)


def _texts(data: Json) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for item in data.values():
            yield from _texts(item)
    elif isinstance(data, list):
        for item in data:
            yield from _texts(item)


EXAMPLE = '{"http": {"url": "http://localhost:8000/chat", "request": {"question": "{{input}}"}, "text": "$.answer"}}'
DEFAULT_REQUEST: Json = {"input": "{{input}}", "session_id": "{{session_id}}", "history": "{{history}}"}
CALL_FIELDS = ("name", "arguments", "result", "error", "id")
USAGE_FIELDS = ("input_tokens", "output_tokens", "cost_usd", "model_calls")
_METHODS = ("POST", "PUT", "PATCH", "GET")


@record
class HttpOptions:
    """A checked description; header values never appear in its `repr`."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default=NOTHING, repr=False)
    request: Template = field(default_factory=lambda: Template.parse(DEFAULT_REQUEST))
    text: Selector | None = None
    """Where the words are; `None` looks in the usual places."""
    tool_calls: Selector | None = None
    call_fields: Mapping[str, Selector] = NOTHING
    usage: Selector | Mapping[str, Selector] | None = None
    state: Selector | None = None
    timeout: float = 300.0
    name: str = ""

    @property
    def title(self) -> str:
        return self.name or self.place

    @property
    def place(self) -> str:
        """The address without what may be secret in it."""
        parts = urlsplit(self.url)
        return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"

    @property
    def host(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.hostname}{f':{parts.port}' if parts.port else ''}"

    def expanded_headers(self) -> dict[str, str]:
        headers = {name: expand(value, f"headers.{name}") for name, value in self.headers.items()}
        for name, value in headers.items():
            if not value.isascii() or any(ord(character) < 32 and character != "\t" for character in value):
                raise UsageError(f"the header {name} has a value that HTTP cannot carry; check for a stray line end")
        return headers

    def secrets(self) -> list[str]:
        """What must never be shown: values from the environment, and headers whose name says that they are secret."""
        import os

        found = [os.environ.get(name, "") for value in self.headers.values() for name in variables_in(value)]
        found += [
            part
            for name, value in self.headers.items()
            if is_secret_name(name, wide=True)
            for part in (value, value.rpartition(" ")[2])
        ]
        parts = urlsplit(self.url)
        found += [parts.password or "", parts.query]
        return sorted({secret for secret in found if len(secret) >= 4}, key=len, reverse=True)


def read_http_options(data: Json) -> HttpOptions:
    """Raises `UsageError` that says what to write."""
    options = Options({"url": data} if isinstance(data, str) else data, "http", EXAMPLE)
    calls, call_fields = _tool_calls(options)
    request = options.take("request", (dict, list, str), "a JSON template")
    result = HttpOptions(
        url=_url(options),
        method=_method(options),
        headers=options.texts_by_name("headers"),
        request=Template.parse(DEFAULT_REQUEST if request is None else request),
        text=_selector(options.text("text")),
        tool_calls=calls,
        call_fields=call_fields,
        usage=_usage(options),
        state=_selector(options.text("state")),
        timeout=_timeout(options),
        name=options.text("name", ""),
    )
    options.done()
    if result.method == "GET" and not isinstance(result.request.data, Mapping):
        raise options.wrong("request", "must be an object when the method is GET, whose query it becomes")
    result.expanded_headers()
    return result


def _url(options: Options) -> str:
    url: str = options.required("url", str, "an http:// or https:// address")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(character.isspace() for character in url):
        raise options.wrong("url", "is not an http:// or https:// address")
    return url


def _method(options: Options) -> str:
    method: str = options.text("method", "POST").upper()
    if method not in _METHODS:
        raise options.wrong("method", f"must be one of {', '.join(_METHODS)}")
    return method


def _timeout(options: Options) -> float:
    seconds = float(options.take("timeout", (int, float), "a number of seconds", 300.0))
    if not math.isfinite(seconds) or seconds <= 0:
        raise options.wrong("timeout", "must be more than 0 seconds")
    return seconds


def _selector(text: str | None) -> Selector | None:
    return None if text is None else parse_selector(text)


def _tool_calls(options: Options) -> tuple[Selector | None, Mapping[str, Selector]]:
    """A selector of the list of calls, or an object that also says where things stand in each call."""
    given = options.take("tool_calls", (str, dict), "a selector, or an object of selectors")
    if not isinstance(given, dict):
        return _selector(given), NOTHING
    inner = Options(given, "http.tool_calls", '{"select": "steps[*]", "name": "tool", "arguments": "params"}')
    select = inner.required("select", str, "the selector of the list of calls")
    return parse_selector(select), _selectors(inner, CALL_FIELDS)


def _usage(options: Options) -> Selector | Mapping[str, Selector] | None:
    given = options.take("usage", (str, dict), "a selector, or an object of selectors")
    if not isinstance(given, dict):
        return _selector(given)
    return _selectors(Options(given, "http.usage", '{"input_tokens": "meta.tokens.in"}'), USAGE_FIELDS)


def _selectors(options: Options, names: tuple[str, ...]) -> dict[str, Selector]:
    texts: dict[str, Any] = {name: options.text(name) for name in names}
    options.done()
    return {name: parse_selector(text) for name, text in texts.items() if text is not None}
