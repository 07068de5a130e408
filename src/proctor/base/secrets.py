"""What a secret looks like, and how it is masked: the one rule for the store, every report, traces, judges and PII.

A secret is found by the shape that its vendor gives it, by the name it stands under, or because a variable of the
environment holds it.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, cast

from proctor.base.json_data import Json, Unset, plain, show
from proctor.base.records import record

FILE_VALUES: dict[tuple[str, str], None] = {}
"""What `.env` files gave, by name, for as long as the process lasts: a report may be written after a run."""
SHORTEST_VALUE = 8
"""Values of environment variables that are shorter are found in ordinary words."""
LONGEST_VALUE = 4096
LONGEST_NAME = 80
RANDOM_LENGTH, _RANDOM_ENTROPY = 16, 3.5

SECRET_NAMES = tuple(
    """authorization cookie api_key apikey api_token apitoken password passwd pwd passphrase secret secret_key secretkey
    access_key accesskey access_token accesstoken refresh_token refreshtoken auth_token authtoken id_token
    bearer_token session_token sessiontoken private_key privatekey signing_key encryption_key account_key accountkey
    master_key subscription_key service_key credential credentials connection_string connectionstring""".split()
)
"""How the name of a secret ends, in lower case and with underscores."""
UNCERTAIN_NAMES = ("token", "auth")
"""Also names of ordinary things: a value under one is a secret only if it looks random."""
_WIDE = r"(?i)api[_-]?key|passw(or)?d|secret|credential|authorization|connection[_-]?string|token$|cookie$|(^|[_-])key$"
_NOT_A_VALUE = r"(file|path|dir|folder|name|url|uri|endpoint|region|type|count|limit|size|sock)$"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MASKED = r"\[secret: [^\[\]]{1,80}, [0-9]{1,12} characters\]"
_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_compiled = functools.cache(re.compile)
"""When a pattern is first needed: most texts need none, and compiling all of them delays every start."""
_LETTERS_LENGTH = 20
_HINTS = tuple("passw pwd passphrase secret token key auth cookie credential bearer basic connection".split())
"""One of these stands in every name of a secret and in every scheme of authorization."""


@record
class Secret:
    """Where a secret stands in a text."""

    kind: str
    """In words: the vendor's token, or the name that the value stands under."""
    start: int
    end: int
    by_name: bool = False
    """Found because of the name before it, not by its shape."""


def mask(text: str, known: Iterable[str] = ()) -> str:
    """`text` with each secret replaced by its kind and length; `known` are texts that are secrets whatever they are."""
    return _replaced(text, find_secrets(text, known))


def mask_values(text: str, known: Iterable[str], shortest: int = SHORTEST_VALUE) -> str:
    """`text` without the `known` secrets, and otherwise as it is."""
    return _replaced(text, _merged(_find_values(text, [("key", value) for value in known if len(value) >= shortest])))


def mask_data(value: Json, known: Iterable[str] = (), *, wide: bool = False) -> Json:
    """The same data without secrets; itself where it holds none.

    `wide` takes more names for those of secrets: `key` and `token` are, where a model or an account is described.
    """
    return Masker(known, wide=wide).data(value)


def is_masked(text: str) -> bool:
    """Whether a secret was masked in it."""
    return "[secret: " in text and _compiled(_MASKED).search(text) is not None


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str, *, wide: bool = False) -> bool:
    """Whether values of that name are secrets: `http.request.header.authorization`, `X-Api-Key`, `apiKey`."""
    last = last_part(name)
    for ending in SECRET_NAMES:
        if last.endswith(ending) and ("_" not in ending or last == ending or last.endswith("_" + ending)):
            return True
    return wide and _compiled(_WIDE).search(last) is not None and _compiled(_NOT_A_VALUE).search(last) is None


def find_secrets(text: str, known: Iterable[str] = ()) -> list[Secret]:
    """In the order of the text, none overlapping another."""
    return _find(text, _environment_values() + _named_values(known))


def _find(text: str, values: list[tuple[str, str]]) -> list[Secret]:
    found = list(_find_values(text, values)) if values else []
    if _may_hold_secrets(text):
        from proctor.base.secret_patterns import find_by_name, find_shapes

        found += [Secret(*shape) for shape in find_shapes(text)]
        if _has_hint(text.lower()):
            found += find_by_name(text)
    return _merged(found)


class Masker:
    """Masks texts and data, and whatever repeats the `known` secrets; reads the environment once."""

    def __init__(self, known: Iterable[str] = (), *, wide: bool = False) -> None:
        self._values = _environment_values() + _named_values(known)
        self._wide = wide
        self._known_texts: dict[str, str] = {}
        """What texts became; those of a trial come again in its spans."""

    def may_be_in(self, texts: Iterable[str]) -> bool:
        """Whether any of the texts, names of values included, is worth a closer look; quick for ordinary text."""
        whole = "\n".join(texts)
        return _may_hold_secrets(whole) or any(value in whole for _, value in self._values)

    def text(self, text: str) -> str:
        masked = self._known_texts.get(text)
        if masked is None:
            masked = self._known_texts[text] = _replaced(text, _find(text, self._values))
        return masked

    def data(self, value: Json, name: str = "") -> Json:
        """`name` is that under which the value stands."""
        if type(value) is str:
            return self._text_under(name, value)
        if value is None or isinstance(value, (bool, float, enum.Enum)):
            return value
        if isinstance(value, Mapping):
            changed = {key: self.data(item, str(key)) for key, item in value.items()}
            return value if all(changed[key] is item for key, item in value.items()) else changed
        if isinstance(value, (list, tuple)):
            items = [self.data(item, name) for item in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        if isinstance(value, int):
            named = abs(value) >= 1000 and name and is_secret_name(name)
            return _shown(kind_of(name), len(str(value))) if named else value
        if getattr(type(value), "_given", None) is not None:
            return self.record(value, name)
        simple = plain(value)
        changed = self.data(simple, name) if isinstance(simple, (str, dict, list)) else simple
        return value if changed is simple else changed

    def record(self, value: Any, under: str = "") -> Any:
        """A copy of one of Proctor's own records with its secrets masked; itself where it holds none."""
        name = (getattr(value, "name", "") or under) if hasattr(value, "value") else ""
        changed = {
            field: new
            for field in _fields(cast(Hashable, type(value)))
            if field != "tool_definitions"  # the schema of a tool that takes a password is no password
            and (new := self.data(old := getattr(value, field), name if field == "value" else "")) is not old
        }
        if not changed:
            return value
        made = copy.copy(value)
        for field, new in changed.items():  # set as they are: a masked text need not be a valid value of the field
            object.__setattr__(made, field, tuple(new) if isinstance(getattr(value, field), tuple) else new)
        return made

    def _text_under(self, name: str, text: str) -> str:
        if not text or not name or not is_value(text, name):
            return self.text(text) if len(text) >= SHORTEST_VALUE else text
        if is_secret_name(name, wide=self._wide) or (is_uncertain(name) and looks_random(text)):
            return _shown(kind_of(name), len(text))
        return self.text(text)


@functools.cache
def _fields(kind: Hashable) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]


def values_under_names(value: Any, name: str = "") -> Iterator[str]:
    """Texts that stand under the name of a secret, at any depth: elsewhere they may be repeated without it."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from values_under_names(item, str(key))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from values_under_names(item, name)
    elif type(value) is str:
        if name and len(value) >= SHORTEST_VALUE and is_secret_name(name) and is_value(value, name):
            yield value
    elif getattr(type(value), "_given", None) is not None:
        own = (getattr(value, "name", "") or name) if hasattr(value, "value") else ""
        for field in _fields(cast(Hashable, type(value))):
            yield from values_under_names(getattr(value, field), own if field == "value" else "")


def texts_in(value: object) -> list[str]:
    """All texts in data or in one of Proctor's records, names of values included, in no order; quick."""
    found: list[str] = []
    left = [value]
    while left:
        value = left.pop()
        kind = type(value)
        if kind is str:
            found.append(value)  # type: ignore[arg-type]
        elif kind in _NO_TEXT:
            continue
        elif (parts_of := _parts_of(kind)) is not None:  # type: ignore[arg-type]
            left.extend(parts_of(value))
        elif not issubclass(kind, (int, float, enum.Enum)):
            found.append(show(plain(value)))
    return found


_NO_TEXT = frozenset({type(None), bool, int, float, Unset})


@functools.lru_cache(maxsize=512)
def _parts_of(kind: type[object]) -> Callable[[Any], Iterable[object]] | None:
    """How what is inside a value of a type is reached, worked out once for each; `None` where nothing is."""
    given: Callable[[Any], Iterable[object]] | None = getattr(kind, "_given", None)
    if given is not None:
        return given
    if issubclass(kind, Mapping):
        return _names_and_values
    return iter if issubclass(kind, (list, tuple)) else None


def _names_and_values(data: Mapping[object, object]) -> Iterable[object]:
    return [*map(str, data), *data.values()] if data else ()


def looks_random(value: str) -> bool:
    """Long, of mixed characters, with more information per character than words have, and no UUID."""
    if len(value) < RANDOM_LENGTH or not any(character.isdigit() for character in value[:LONGEST_VALUE]):
        return False
    sample = value[:LONGEST_VALUE]
    counts = Counter(sample)
    entropy = -sum(count / len(sample) * math.log2(count / len(sample)) for count in counts.values())
    return entropy >= _RANDOM_ENTROPY and " " not in sample and not _compiled(_UUID).fullmatch(value)


def _may_hold_secrets(text: str) -> bool:
    """Shapes of vendors are words of 16 characters or more; other secrets stand beside a name.

    Letters alone are a word, such as the name of an evaluator, up to the shortest shape that can do without digits.
    """
    words = text.split()
    if max(map(len, words), default=0) >= RANDOM_LENGTH:
        long = [word for word in words if len(word) >= RANDOM_LENGTH]
        if any(len(word) >= _LETTERS_LENGTH or not word.isalpha() for word in long):
            return True
    return _has_hint(text.lower())


def _has_hint(lowered: str) -> bool:
    for hint in _HINTS:  # noqa: SIM110  a generator takes twice as long, and this is asked of every trial
        if hint in lowered:
            return True
    return False


def _environment_values() -> list[tuple[str, str]]:
    """What variables hold whose names are those of secrets, and whatever came from `.env` files, by name.

    Asked for every text: worked out anew only if a variable has changed.
    """
    global _environment
    raw = getattr(os.environ, "_data", None)  # the same mapping without a conversion of each name and value
    seen, files, values = _environment
    if raw is None or seen != raw or files != FILE_VALUES:
        named = [(name, value) for name, value in os.environ.items() if is_secret_name(name, wide=True)]
        kept = [(name, value) for name, value in dict.fromkeys([*named, *FILE_VALUES]) if len(value) >= SHORTEST_VALUE]
        values = [(name, value) for name, value in kept if name not in ("PWD", "OLDPWD")]
        _environment = (dict(raw or {}), dict(FILE_VALUES), values)
    return values


_environment: tuple[dict[Any, Any], dict[tuple[str, str], None], list[tuple[str, str]]] = ({}, {}, [])
"""Variables and values of files as they were when the secrets among them were last worked out, and these."""


def _named_values(known: Iterable[str]) -> list[tuple[str, str]]:
    return [("key", value) for value in known if len(value) >= SHORTEST_VALUE]


def _find_values(text: str, values: Iterable[tuple[str, str]]) -> Iterator[Secret]:
    """A value of letters alone counts as a whole word only: a password may be a part of ordinary words."""
    for name, value in values:
        start = text.find(value)
        while start >= 0:
            end = start + len(value)
            inside = value.isalpha() and (text[start - 1 : start].isalnum() or text[end : end + 1].isalnum())
            if not inside:
                yield Secret(kind_of(name), start, end, True)
            start = text.find(value, end)


def _shown(kind: str, length: int) -> str:
    return f"[secret: {kind}, {length} characters]"


def _merged(found: Iterable[Secret]) -> list[Secret]:
    """In order; what overlaps an earlier one is a part of it."""
    kept: list[Secret] = []
    for item in sorted(found, key=lambda item: (item.start, -item.end)):
        if kept and item.start < kept[-1].end:
            if item.end > kept[-1].end:
                kept[-1] = Secret(kept[-1].kind, kept[-1].start, item.end, kept[-1].by_name)
        else:
            kept.append(item)
    return kept


def _replaced(text: str, found: list[Secret]) -> str:
    if not found:
        return text
    parts: list[str] = []
    position = 0
    for item in found:
        parts += [text[position : item.start], _shown(item.kind, item.end - item.start)]
        position = item.end
    return "".join([*parts, text[position:]])


def is_value(text: str, name: str) -> bool:
    """No placeholder, variable or mask; `pwd` may also name the working folder."""
    if name.lower() == "pwd" and text.startswith(("/", "~", "C:")):
        return False
    if text.startswith(("${", "$", "<", "[secret: ")) and (text[0] != "[" or _compiled(_MASKED).fullmatch(text)):
        return False
    return any(character.isalnum() for character in text[:LONGEST_VALUE])


@functools.lru_cache(maxsize=4096)
def last_part(name: str) -> str:
    """The last part of a dotted name, in lower case and with underscores."""
    return _CAMEL.sub("_", name[-LONGEST_NAME:].rpartition(".")[2]).lower().replace("-", "_")


def is_uncertain(name: str) -> bool:
    last = last_part(name)
    return last in UNCERTAIN_NAMES or last.endswith(("_token", "_auth"))


def kind_of(name: str) -> str:
    """A name as it can stand in a mask: short, and without what a pattern would take for a range."""
    return re.sub(r"[^A-Za-z0-9_ ]", "_", name.rpartition(".")[2])[:40] or "value"
