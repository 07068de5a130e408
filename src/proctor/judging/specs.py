"""Reads a judge as people write it into a `PanelSpec`: text, an object of options, or in Python a judge or a panel.

`read_panel` is the only reader. A spec says which models are asked and with which settings; it sends nothing, and
`judges.Judges` makes the judges that it describes. `identity` is what tells one spec from another in fingerprints.
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
from proctor.base.source import Pointer
from proctor.judging.client import ClientEndpoint
from proctor.judging.judge import OLD_RULES_NAME, RULES, RULES_VERSION, Judge, is_judge
from proctor.judging.panel import Panel
from proctor.judging.provider_table import address_problem, parse_model_name
from proctor.judging.providers import ModelSpec
from proctor.judging.rate_limit import NO_LIMITS, TIMEOUT, RateLimits
from proctor.plugins import JudgeSpelling, load, plugins

_SHOWN_NOTICES: dict[Any, Any] = {}

LOCAL = "local:"
"""How model files on this machine were named before; the error for it says what to write instead."""

NAMING = frozenset({"model", "jury", "cascade"})
"""The keys of an object that name a judge. A tool may have others: `plugins.JudgeSpelling`."""


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """One judge: a provider's model, a client of the user's, a judge made in Python, or the rule-based judge."""

    model: ModelSpec | ClientEndpoint | Judge | Literal["rules"]
    timeout: float = TIMEOUT
    limits: RateLimits = NO_LIMITS

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def needs_model(self) -> bool:
        """Whether a language model is asked, as far as is known: a judge made in Python counts as one."""
        return self.model != RULES

    @property
    def identity(self) -> Json:
        """What may change its verdicts: the model and its settings, or the version of the rules; never a key."""
        if isinstance(self.model, ModelSpec):
            settings = ("base_url", "api_version", "temperature", "top_p", "max_tokens")
            known = {name: getattr(self.model, name) for name in settings}
            return {"model": self.name} | {name: value for name, value in known.items() if value is not None}
        if isinstance(self.model, ClientEndpoint):
            return {"model": self.name, **self.model.parameters}
        return {"model": RULES, "version": RULES_VERSION} if self.model == RULES else {"model": self.name}


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """The judges and how they decide; without members, options for a judge that is named elsewhere."""

    members: tuple[JudgeSpec, ...] = ()
    samples: int = 1
    mode: Literal["jury", "cascade"] = "jury"
    band: float | None = None

    @property
    def needs_model(self) -> bool:
        return any(member.needs_model for member in self.members)

    @property
    def identity(self) -> Json:
        """What may change its verdicts, for fingerprints."""
        members: list[Json] = [member.identity for member in self.members]
        return {"judges": members, "samples": self.samples, "mode": self.mode, "band": self.band}


def read_panel(written: Any) -> PanelSpec:
    """What `written` means; raises `UsageError` with everything that is wrong with it."""
    if isinstance(written, str):
        return PanelSpec((_named(written),))
    if isinstance(written, PanelSpec):
        return written
    if isinstance(written, Panel):
        members = tuple(JudgeSpec(judge) for judge in written.judges)
        return PanelSpec(members, written.samples, written.mode, written.band)
    if is_judge(written):
        return PanelSpec((JudgeSpec(written),))
    if not isinstance(written, Mapping):
        raise UsageError(
            "a judge is named by text such as openai:gpt-5-mini, by an object of options, or is a Judge; "
            f"not {json_type_name(written)}"
        )
    document = Document(Path("judge"), "", written, lambda pointer: None)
    found = _panel(document, written, ("judge",))
    if document.problems or found is None:
        raise UsageError("\n".join(f"{problem.where} {problem.message}" for problem in document.problems))
    return found


def names_judge(written: Any) -> bool:
    """Whether a judge is named; an object of options alone belongs to a judge that is named elsewhere."""
    if not isinstance(written, Mapping) or not NAMING.isdisjoint(written):
        return True
    spelling = _spelling(written)
    return spelling is not None and not spelling.naming_keys.isdisjoint(written)


def _spelling(data: Json) -> JudgeSpelling | None:
    """The tool whose way of writing a judge this is; `None` for our own."""
    if not isinstance(data, Mapping) or not NAMING.isdisjoint(data):
        return None
    known = (spelling for plugin in plugins() for spelling in plugin.judge_spellings)
    return next((spelling for spelling in known if not spelling.keys.isdisjoint(data)), None)


def _panel(document: Document, data: Json, pointer: Pointer) -> PanelSpec | None:
    spelling = _spelling(data)
    fields = Fields(document, data, pointer, camel=spelling is not None and spelling.camel)
    read = _own if spelling is None else load(spelling.read)
    before = len(document.problems)
    try:
        found = read(fields)
    except UsageError as error:
        document.problem(pointer, f"cannot be used: {error}")
        found = None
    fields.report_unknown_keys()
    return found if len(document.problems) == before else None


def _own(fields: Fields) -> PanelSpec | None:
    samples = fields.integer("samples", 1, least=1)
    groups = [name for name in ("model", "jury", "cascade") if fields.take(name) is not None]
    if len(groups) > 1:
        fields.problem(groups[1], f"cannot be given together with {groups[0]}")
        return None
    if groups in (["jury"], ["cascade"]):
        return _several(fields, groups[0], samples)
    named = fields.text("model", blank=False)
    settings = _Settings(fields)
    if named is None:
        for key in settings.given:
            fields.problem(key, "needs a model to apply to")
        return PanelSpec(samples=samples)
    model = _named(named).model
    if not isinstance(model, ModelSpec):
        for key in sorted(settings.given):
            fields.problem(key, f"has no meaning for the judge {named}")
        return PanelSpec((JudgeSpec(model),), samples)
    return PanelSpec((settings.applied(model),), samples)


def _several(fields: Fields, group: str, samples: int) -> PanelSpec | None:
    band = fields.number("band", least=0, most=1) if group == "cascade" else None

    def member(data: Json, pointer: Pointer) -> JudgeSpec | None:
        found = _member(fields.document, data, pointer)
        if found is not None and (len(found.members) != 1 or found.samples != 1):
            fields.document.problem(pointer, "must name one judge; samples and groups belong one level up")
            return None
        return None if found is None else found.members[0]

    members = fields.each(group, member, least=1)
    known = [each for each in members if each is not None]
    mode: Literal["jury", "cascade"] = "cascade" if group == "cascade" else "jury"
    return PanelSpec(tuple(known), samples, mode, band)


def _member(document: Document, data: Json, pointer: Pointer) -> PanelSpec | None:
    if not isinstance(data, str):
        return _panel(document, data, pointer)
    try:
        return PanelSpec((_named(data),))
    except UsageError as error:
        document.problem(pointer, f"cannot be used: {error}")
        return None


class _Settings:
    """The options of one model; only those that were given."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self.given: dict[str, Any] = {
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
        self.given = {key: value for key, value in self.given.items() if value is not None}

    def applied(self, model: ModelSpec) -> JudgeSpec:
        given = self.given
        limits = rate_limits(given.get("concurrency"), given.get("requests_per_minute"), given.get("tokens_per_minute"))
        spec = replace(
            model,
            base_url=read_address(self._fields, "base_url", given.get("base_url")),
            api_key=_key_in(self._fields, given.get("api_key_env")),
            temperature=given.get("temperature"),
            top_p=given.get("top_p"),
            max_tokens=given.get("max_tokens"),
        )
        return JudgeSpec(spec, given.get("timeout", TIMEOUT), limits)


def _named(named: str) -> JudgeSpec:
    named = named.strip()
    if named == OLD_RULES_NAME:
        # The only place that accepts the former name. The notice is shown once in a process.
        notice = f"the judge {OLD_RULES_NAME!r} is now called {RULES!r}; write {RULES}"
        warnings.warn_explicit(notice, RenamedWarning, "proctor", 1, registry=_SHOWN_NOTICES)
        named = RULES
    if named == RULES:
        return JudgeSpec(RULES)
    if named.startswith(LOCAL):
        raise UsageError(
            f"{named}: model files are not run here; serve it with Ollama, llama.cpp or vLLM and name that server: "
            "ollama:MODEL, or {model: openai:MODEL, base_url: http://127.0.0.1:8080/v1}"
        )
    return JudgeSpec(ModelSpec(*parse_model_name(named)))


def rate_limits(concurrency: int | None, requests: int | None = None, tokens: int | None = None) -> RateLimits:
    """The limits of an endpoint: requests at once, requests and tokens a minute."""
    if concurrency is None and requests is None and tokens is None:
        return NO_LIMITS
    most = NO_LIMITS.maximum if concurrency is None else concurrency
    return RateLimits(requests, tokens, initial=min(NO_LIMITS.initial, most), maximum=most)


def _seconds(fields: Fields, name: str) -> float | None:
    value: float | None = fields.number(name)
    if value is not None and value <= 0:
        fields.problem(name, "must be more than 0")
        return None
    return value


def read_address(fields: Fields, name: str, given: str | None) -> str | None:
    """A base URL with its variables filled in; notes a problem of the key `name` if it is not valid."""
    if given is None:
        return None
    address = read_expanded(fields, name, given.strip())
    if address is None:
        return None
    wrong = address_problem(address)
    if wrong:
        fields.problem(name, wrong)
        return None
    return address.rstrip("/")


def read_expanded(fields: Fields, name: str, text: str) -> str | None:
    """`text` with its variables; a problem of its key where one is not set."""
    try:
        return expand(text, name)
    except UsageError as error:
        fields.problem(name, str(error).removeprefix(f"{name} "))
        return None


def _key_in(fields: Fields, variable: str | None) -> str | None:
    if variable is None:
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        fields.problem("api_key_env", "must be the name of an environment variable, not the key itself")
        return None
    value = os.environ.get(variable)
    if not value:
        fields.problem("api_key_env", f"names {variable}, which is not set")
    return value or None
