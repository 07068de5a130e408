"""Reads a judge as users write it into a `PanelSpec`: text, an object of options, or in Python a judge or a panel.

`read_panel` is the only reader. A spec says which models are asked and with which settings. It sends nothing;
`judges.Judges` creates the judges that it describes. `identity` distinguishes specs in fingerprints.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from proctor.base.documents import Document, Fields, json_type_name
from proctor.base.environment import expand
from proctor.base.errors import RenamedWarning, UsageError
from proctor.base.json_data import Json
from proctor.base.rate_limit import NO_LIMITS, RateLimits
from proctor.base.source import Pointer
from proctor.judging.client import ClientEndpoint, FunctionEndpoint
from proctor.judging.judge import OLD_RULES_NAME, RULES, RULES_VERSION, Judge, is_judge
from proctor.judging.panel import Panel
from proctor.judging.provider_table import address_problem, parse_model_name
from proctor.judging.providers import ModelSpec
from proctor.judging.rate_limit import TIMEOUT
from proctor.plugins import JudgeSpelling, load, plugins

_SHOWN_NOTICES: dict[Any, Any] = {}

LOCAL = "local:"
"""The former prefix of model files on this machine; the error message says what to write instead."""

NAMING_KEYS = frozenset({"model", "jury", "cascade"})
"""The keys of an object that name a judge. A tool may have others: `plugins.JudgeSpelling`."""


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """One judge: a provider's model, the user's own client, a Judge object, or the rule-based judge."""

    model: ModelSpec | ClientEndpoint | Judge | Literal["rules"]
    timeout: float = TIMEOUT
    limits: RateLimits = NO_LIMITS

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def needs_model(self) -> bool:
        """Whether it asks a language model; a Judge object counts as one."""
        return self.model != RULES

    @property
    def identity(self) -> Json:
        """What may change its scores: the model and its settings, or the version of the rules; never a key."""
        if isinstance(self.model, ModelSpec):
            settings = ("base_url", "api_version", "temperature", "top_p", "max_tokens")
            values = {name: getattr(self.model, name) for name in settings}
            return {"model": self.name} | {name: value for name, value in values.items() if value is not None}
        if isinstance(self.model, ClientEndpoint):
            return {"model": self.name, **self.model.parameters}
        return {"model": RULES, "version": RULES_VERSION} if self.model == RULES else {"model": self.name}


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """The judges and how they decide; without members, the options of a judge that is named elsewhere."""

    members: tuple[JudgeSpec, ...] = ()
    samples: int = 1
    mode: Literal["jury", "cascade"] = "jury"
    band: float | None = None

    @property
    def needs_model(self) -> bool:
        return any(member.needs_model for member in self.members)

    @property
    def identity(self) -> Json:
        """What may change its scores, for fingerprints."""
        members: list[Json] = [member.identity for member in self.members]
        return {"judges": members, "samples": self.samples, "mode": self.mode, "band": self.band}


def read_panel(written: Any) -> PanelSpec:
    """The spec for a judge as written; raises `UsageError` with everything that is wrong with it."""
    if isinstance(written, str):
        return PanelSpec((_read_name(written),))
    if isinstance(written, PanelSpec):
        return written
    if isinstance(written, Panel):
        members = tuple(JudgeSpec(judge) for judge in written.judges)
        return PanelSpec(members, written.samples, written.mode, written.band)
    if is_judge(written):
        return PanelSpec((JudgeSpec(written),))
    if callable(written) and not isinstance(written, type):
        return PanelSpec((JudgeSpec(FunctionEndpoint(written)),))
    if not isinstance(written, Mapping):
        raise UsageError(
            "a judge must be a string such as openai:gpt-5-mini, an object of options, a function, or a Judge, "
            f"not {json_type_name(written)}"
        )
    document = Document(Path("judge"), "", written, lambda pointer: None)
    found = _panel(document, written, ("judge",))
    if document.problems or found is None:
        raise UsageError("\n".join(f"{problem.where} {problem.message}" for problem in document.problems))
    return found


def names_judge(written: Any) -> bool:
    """Whether it names a judge; an object may have only options for a judge that is named elsewhere."""
    if not isinstance(written, Mapping) or not NAMING_KEYS.isdisjoint(written):
        return True
    spelling = _spelling(written)
    return spelling is not None and not spelling.naming_keys.isdisjoint(written)


def _spelling(data: Json) -> JudgeSpelling | None:
    """The spelling of another tool that this object has; `None` for Proctor's own."""
    if not isinstance(data, Mapping) or not NAMING_KEYS.isdisjoint(data):
        return None
    spellings = (spelling for plugin in plugins() for spelling in plugin.judge_spellings)
    return next((spelling for spelling in spellings if not spelling.keys.isdisjoint(data)), None)


def _panel(document: Document, data: Json, pointer: Pointer) -> PanelSpec | None:
    spelling = _spelling(data)
    fields = Fields(document, data, pointer, camel=spelling is not None and spelling.camel)
    read = _read_options if spelling is None else load(spelling.read)
    before = len(document.problems)
    try:
        found = read(fields)
    except UsageError as error:
        document.problem(pointer, f"cannot be used: {error}")
        found = None
    fields.report_unknown_keys()
    return found if len(document.problems) == before else None


def _read_options(fields: Fields) -> PanelSpec | None:
    samples = fields.integer("samples", 1, least=1)
    groups = [name for name in ("model", "jury", "cascade") if fields.take(name) is not None]
    if len(groups) > 1:
        fields.problem(groups[1], f"cannot be combined with {groups[0]}")
        return None
    if groups in (["jury"], ["cascade"]):
        return _read_group(fields, groups[0], samples)
    name = fields.text("model", blank=False)
    settings = _Settings(fields)
    if name is None:
        for key in settings.options:
            fields.problem(key, "needs a model; add the key model")
        return PanelSpec(samples=samples)
    model = _read_name(name).model
    if not isinstance(model, ModelSpec):
        for key in sorted(settings.options):
            fields.problem(key, f"does not apply to the judge {name}; remove it")
        return PanelSpec((JudgeSpec(model),), samples)
    return PanelSpec((settings.apply_to(model),), samples)


def _read_group(fields: Fields, group: str, samples: int) -> PanelSpec | None:
    band = fields.number("band", least=0, most=1) if group == "cascade" else None

    def member(data: Json, pointer: Pointer) -> JudgeSpec | None:
        found = _member(fields.document, data, pointer)
        if found is not None and (len(found.members) != 1 or found.samples != 1):
            fields.document.problem(pointer, "must name one judge; move samples, jury and cascade one level up")
            return None
        return None if found is None else found.members[0]

    members = fields.each(group, member, least=1)
    valid = [each for each in members if each is not None]
    mode: Literal["jury", "cascade"] = "cascade" if group == "cascade" else "jury"
    return PanelSpec(tuple(valid), samples, mode, band)


def _member(document: Document, data: Json, pointer: Pointer) -> PanelSpec | None:
    if not isinstance(data, str):
        return _panel(document, data, pointer)
    try:
        return PanelSpec((_read_name(data),))
    except UsageError as error:
        document.problem(pointer, f"cannot be used: {error}")
        return None


class _Settings:
    """The options of one model, without those that are not set."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self.options: dict[str, Any] = {
            "base_url": fields.text("base_url", blank=False),
            "api_key_env": fields.text("api_key_env", blank=False),
            "temperature": fields.number("temperature", least=0, most=2),
            "top_p": fields.number("top_p", least=0, most=1),
            "max_tokens": fields.integer("max_tokens", least=1),
            "timeout": _seconds(fields, "timeout"),
            "requests_per_minute": fields.integer("requests_per_minute", least=1),
            "tokens_per_minute": fields.integer("tokens_per_minute", least=1),
            "concurrency": fields.integer("concurrency", least=1),
        }
        self.options = {key: value for key, value in self.options.items() if value is not None}

    def apply_to(self, model: ModelSpec) -> JudgeSpec:
        options = self.options
        limits = rate_limits(
            options.get("concurrency"), options.get("requests_per_minute"), options.get("tokens_per_minute")
        )
        spec = replace(
            model,
            base_url=read_address(self._fields, "base_url", options.get("base_url")),
            api_key=_read_key(self._fields, options.get("api_key_env")),
            temperature=options.get("temperature"),
            top_p=options.get("top_p"),
            max_tokens=options.get("max_tokens"),
        )
        return JudgeSpec(spec, options.get("timeout", TIMEOUT), limits)


def _read_name(name: str) -> JudgeSpec:
    """The judge that a string names."""
    name = name.strip()
    if name == OLD_RULES_NAME:
        # The only place that accepts the former name. The notice is shown once per process.
        notice = f"the judge {OLD_RULES_NAME!r} is now called {RULES!r}; write {RULES}"
        warnings.warn_explicit(notice, RenamedWarning, "proctor", 1, registry=_SHOWN_NOTICES)
        name = RULES
    if name == RULES:
        return JudgeSpec(RULES)
    if name.startswith(LOCAL):
        raise UsageError(
            f"{name}: Proctor does not run model files; serve the model with Ollama, llama.cpp or vLLM and write "
            "ollama:MODEL, or {model: openai:MODEL, base_url: http://127.0.0.1:8080/v1}"
        )
    return JudgeSpec(ModelSpec(*parse_model_name(name)))


def rate_limits(concurrency: int | None, requests: int | None = None, tokens: int | None = None) -> RateLimits:
    """The limits of an endpoint: concurrent requests, and requests and tokens per minute."""
    if concurrency is None and requests is None and tokens is None:
        return NO_LIMITS
    maximum = NO_LIMITS.maximum if concurrency is None else concurrency
    return RateLimits(requests, tokens, initial=min(NO_LIMITS.initial, maximum), maximum=maximum)


def _seconds(fields: Fields, name: str) -> float | None:
    value: float | None = fields.number(name)
    if value is not None and value <= 0:
        fields.problem(name, "must be more than 0")
        return None
    return value


def read_address(fields: Fields, name: str, value: str | None) -> str | None:
    """A base URL with its variables filled in; reports a problem at the key `name` if it is not valid."""
    if value is None:
        return None
    address = read_expanded(fields, name, value.strip())
    if address is None:
        return None
    problem = address_problem(address)
    if problem:
        fields.problem(name, problem)
        return None
    return address.rstrip("/")


def read_expanded(fields: Fields, name: str, text: str) -> str | None:
    """`text` with its variables filled in; reports a problem at the key `name` if one is not set."""
    try:
        return expand(text, name)
    except UsageError as error:
        fields.problem(name, str(error).removeprefix(f"{name} "))
        return None


def _read_key(fields: Fields, variable: str | None) -> str | None:
    """The API key in an environment variable."""
    if variable is None:
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        fields.problem("api_key_env", "must be the name of an environment variable, not the key itself")
        return None
    value = os.environ.get(variable)
    if not value:
        fields.problem("api_key_env", f"is {variable}, which is not set")
    return value or None
