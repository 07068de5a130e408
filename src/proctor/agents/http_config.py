"""Reads the mapping that describes an agent in a suite file, and all that an HTTP agent is configured with.

The keys are pydantic models that refuse unknown keys. `read_config` turns all problems of a mapping into one
`UsageError`, which names the keys, says what to write and suggests the right spelling of a misspelled key. The caller
adds the file and the line.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from proctor.base.documents import did_you_mean, json_type_name
from proctor.base.environment import expand, variables_in
from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET, Json, to_text
from proctor.base.masking import is_secret_name
from proctor.base.selectors import Selector, parse_selector


class AgentConfig(BaseModel):
    """The keys of one mapping that describes an agent. Text is not converted to numbers, nor numbers to text."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


ConfigT = TypeVar("ConfigT", bound=AgentConfig)

_TYPE_NOUNS = {
    "string_type": "text",
    "dict_type": "an object",
    "list_type": "a list",
    "bool_type": "true or false",
    "int_type": "a number",
    "float_type": "a number",
}
"""By pydantic's type of error: what the value must be."""


def read_config(model: type[ConfigT], data: Json, where: str, example: str) -> ConfigT:
    """The mapping as an object of the model; raises one `UsageError` with everything that is wrong with it.

    `where` names the mapping in messages, and `example` shows how to write it. A key without a value counts as absent.
    """
    if not isinstance(data, Mapping):
        raise UsageError(f"{where} must be an object, not {json_type_name(data)}; for example {example}")
    try:
        return model.model_validate({str(key): value for key, value in data.items() if value is not None})
    except ValidationError as error:
        problems = [_problem(model, where, detail) for detail in error.errors(include_url=False)]
        raise UsageError(f"{'; '.join(problems)}; for example {example}") from None


def _problem(model: type[AgentConfig], where: str, detail: ErrorDetails) -> str:
    place = ".".join([where, *(str(part) for part in detail["loc"])])
    match detail["type"]:
        case "extra_forbidden":
            key, keys = str(detail["loc"][-1]), sorted(model.model_fields)
            hint = did_you_mean(key, keys) or f"; its keys are {', '.join(keys)}"
            return f"{where} has no key {key!r}{hint}"
        case "missing":
            return f"{where} needs {str(detail['loc'][-1])!r}"
        case "string_too_short" | "too_short":
            return f"{place} is empty"
        case "greater_than_equal":
            return f"{place} must be at least {detail['ctx']['ge']}"
        case "finite_number":
            return f"{place} must be a finite number"
        case kind if kind in _TYPE_NOUNS:
            return f"{place} must be {_TYPE_NOUNS[kind]}, not {json_type_name(detail['input'])}"
        case _:
            return f"{place} {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def invalid_value(message: str) -> PydanticCustomError:
    """The error of a validator; `message` follows the name of the key, as in "must be ..."."""
    return PydanticCustomError("wrong", "{message}", {"message": message})


def one_of(noun: str, *types: type) -> AfterValidator:
    """Validate a key that may have several types with one message; pydantic would report each type separately."""

    def check(value: Any) -> Any:
        if not isinstance(value, types):
            raise invalid_value(f"must be {noun}, not {json_type_name(value)}")
        return value

    return AfterValidator(check)


def _seconds(value: float) -> float:
    if not math.isfinite(value) or value <= 0:
        raise invalid_value("must be more than 0 seconds")
    return value


Seconds = Annotated[float, AfterValidator(_seconds)]


PLACEHOLDER_NAMES = (
    "input",
    "history",
    "messages",
    "state",
    "session_id",
    "user_id",
    "app_name",
    "case",
    "turn",
    "trial",
)
"""The names that a placeholder may start with. `input`, `state` and `case` may be followed by a path: `{{case.id}}`."""

_PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)


class MissingTemplateValue(Exception):
    """The template uses a value that this turn does not have."""


@dataclass(frozen=True, slots=True)
class Template:
    """JSON with placeholders: `{"question": "{{input}}", "user": "{{state.user}}"}`.

    A string that is one placeholder becomes the value itself, with its type. Inside a longer string the value is
    inserted as text. Inserted values are not searched for placeholders. A placeholder without a value is an error,
    unless it ends in `?`.
    """

    data: Json
    selectors: Mapping[str, Selector]
    omits_empty: bool = False
    """Whether keys of the template whose value is null or an empty object are left out."""

    @classmethod
    def parse(cls, data: Json, *, omits_empty: bool = False) -> Template:
        """Parse a template; raises `UsageError` for an unknown placeholder."""
        selectors: dict[str, Selector] = {}
        for text in _strings_in(data):
            for name in _PLACEHOLDER.findall(text):
                selectors[name] = _placeholder_selector(name)
        return cls(data, selectors, omits_empty)

    def render(self, values: Mapping[str, Json], *, state_is_known: bool = True) -> Json:
        """The template with its placeholders replaced; `values` has the values by `PLACEHOLDER_NAMES`.

        Raises `MissingTemplateValue`, but not for the state if `state_is_known` is false.
        """
        if not state_is_known:
            values = {**values, "state": None}
        body = self._render(self.data, values)
        if self.omits_empty and isinstance(body, Mapping):
            return {key: item for key, item in body.items() if item not in (None, {})}
        return body

    def _render(self, data: Json, values: Mapping[str, Json]) -> Json:
        if isinstance(data, str):
            whole = _PLACEHOLDER.fullmatch(data.strip())
            if whole is not None and whole.group(1) in self.selectors:
                return self._value(whole.group(1), values)
            return _PLACEHOLDER.sub(lambda match: _placeholder_text(self._value(match.group(1), values)), data)
        if isinstance(data, Mapping):
            return {key: self._render(item, values) for key, item in data.items()}
        if isinstance(data, list):
            return [self._render(item, values) for item in data]
        return data

    def _value(self, name: str, values: Mapping[str, Json]) -> Json:
        selector = self.selectors[name]
        value = selector.find(values)
        if value is not UNSET:
            return value
        root = selector.steps[0]
        if selector.optional or (root == "state" and values["state"] is None):
            return None
        owner = "input" if root == "input" else "state" if root == "state" else "case"
        raise MissingTemplateValue(
            f"the request template uses {{{{{name}}}}}, but the {owner} has no such value; "
            f"add it, or write {{{{{name}?}}}} if it may be missing"
        )


def default_request() -> Template:
    """The template of services for which none is written."""
    return Template.parse(DEFAULT_REQUEST, omits_empty=True)


def _placeholder_selector(name: str) -> Selector:
    try:
        selector = parse_selector(name)
    except UsageError:
        selector = None
    if selector is None or not selector.steps or selector.steps[0] not in PLACEHOLDER_NAMES:
        hint = did_you_mean(name, PLACEHOLDER_NAMES)
        raise UsageError(
            f"unknown placeholder {{{{{name}}}}}{hint}; use one of {', '.join(PLACEHOLDER_NAMES)}, or a path into one"
        )
    return selector


def _placeholder_text(value: Json) -> str:
    return "" if value is None else to_text(value)


def _strings_in(data: Json) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for item in data.values():
            yield from _strings_in(item)
    elif isinstance(data, list):
        for item in data:
            yield from _strings_in(item)


EXAMPLE = '{"http": {"url": "http://localhost:8000/chat", "request": {"question": "{{input}}"}, "text": "$.answer"}}'
DEFAULT_REQUEST: Json = {
    "input": "{{input}}",
    "session_id": "{{session_id}}",
    "history": "{{history}}",
    "state": "{{state}}",
    "user_id": "{{user_id?}}",
    "app_name": "{{app_name?}}",
}
"""What a service is sent by default. Without values, `state`, `user_id` and `app_name` are left out: some services
refuse keys that they do not know."""
_METHODS = ("POST", "PUT", "PATCH", "GET")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The validated configuration of an HTTP agent. Header values never appear in its `repr`."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    request: Template = field(default_factory=lambda: default_request())
    text: Selector | None = None
    """Where the text of the answer is; `None` looks under common names."""
    tool_calls: Selector | None = None
    call_fields: Mapping[str, Selector] = field(default_factory=dict)
    usage: Selector | Mapping[str, Selector] | None = None
    state: Selector | None = None
    timeout: float = 300.0
    """Seconds."""
    name: str = ""

    @property
    def title(self) -> str:
        return self.name or self.safe_url

    @property
    def safe_url(self) -> str:
        """The URL without the parts that may be secret: user, password and query."""
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
                raise UsageError(
                    f"the header {name} has a value that HTTP does not allow; check it for line breaks and other "
                    "characters that are not ASCII"
                )
        return headers

    def secrets(self) -> list[str]:
        """Texts that must never be shown: values from the environment, and of headers with a name such as `X-Token`."""
        secrets = [os.environ.get(name, "") for value in self.headers.values() for name in variables_in(value)]
        secrets += [
            part
            for name, value in self.headers.items()
            if is_secret_name(name, config_names=True)
            for part in (value, value.rpartition(" ")[2])
        ]
        parts = urlsplit(self.url)
        secrets += [parts.password or "", parts.query]
        return sorted({secret for secret in secrets if len(secret) >= 4}, key=len, reverse=True)


class HttpConfig(AgentConfig):
    """The keys of an HTTP agent."""

    url: str = Field(min_length=1)
    method: str = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    request: Annotated[Any, one_of("a JSON template", dict, list, str)] = None
    text: str | None = None
    tool_calls: Annotated[Any, one_of("a selector, or an object of selectors", str, dict)] = None
    usage: Annotated[Any, one_of("a selector, or an object of selectors", str, dict)] = None
    state: str | None = None
    timeout: Seconds = 300.0
    name: str = ""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid or any(character.isspace() for character in url):
            raise invalid_value("must be an http:// or https:// URL")
        return url

    @field_validator("method")
    @classmethod
    def _check_method(cls, method: str) -> str:
        if method.upper() not in _METHODS:
            raise invalid_value(f"must be one of {', '.join(_METHODS)}")
        return method.upper()


class CallConfig(AgentConfig):
    """Where the tool calls are in an answer, and where the parts of each call are."""

    select: str = Field(min_length=1)
    name: str | None = None
    arguments: str | None = None
    result: str | None = None
    error: str | None = None
    id: str | None = None


class UsageConfig(AgentConfig):
    """Where the token counts and the cost are in an answer."""

    input_tokens: str | None = None
    output_tokens: str | None = None
    cost_usd: str | None = None
    model_calls: str | None = None


_CALL_EXAMPLE = '{"select": "steps[*]", "name": "tool", "arguments": "params"}'
_USAGE_EXAMPLE = '{"input_tokens": "meta.tokens.in"}'


def read_http_options(data: Json) -> HttpOptions:
    """The options of a URL or a mapping; raises `UsageError` with every problem."""
    config = read_config(HttpConfig, {"url": data} if isinstance(data, str) else data, "http", EXAMPLE)
    calls, call_fields = _call_selectors(config.tool_calls)
    options = HttpOptions(
        url=config.url,
        method=config.method,
        headers=config.headers,
        request=default_request() if config.request is None else Template.parse(config.request),
        text=_selector(config.text),
        tool_calls=calls,
        call_fields=call_fields,
        usage=_usage_selectors(config.usage),
        state=_selector(config.state),
        timeout=config.timeout,
        name=config.name,
    )
    if options.method == "GET" and not isinstance(options.request.data, Mapping):
        raise UsageError("http.request must be an object if the method is GET, because it becomes the query")
    options.expanded_headers()
    return options


def _selector(text: str | None) -> Selector | None:
    return None if text is None else parse_selector(text)


def _call_selectors(data: Json) -> tuple[Selector | None, Mapping[str, Selector]]:
    """The selector of the list of calls, and those of the parts of each call."""
    if not isinstance(data, Mapping):
        return _selector(data), {}
    selectors = _selectors(read_config(CallConfig, data, "http.tool_calls", _CALL_EXAMPLE))
    return selectors.pop("select"), selectors


def _usage_selectors(data: Json) -> Selector | Mapping[str, Selector] | None:
    if not isinstance(data, Mapping):
        return _selector(data)
    return _selectors(read_config(UsageConfig, data, "http.usage", _USAGE_EXAMPLE))


def _selectors(config: CallConfig | UsageConfig) -> dict[str, Selector]:
    return {name: parse_selector(text) for name, text in config.model_dump(exclude_none=True).items()}
