"""Reads statements into typed tokens, and passages into sources: sentences and records.

A token has a key that is the same for every way to write the same thing ("doesn't", "does not"; "1.5 hours",
"90 minutes") and a kind, which decides whether two different tokens fill the same slot. A sentence becomes a list of
tokens in order, since order carries the roles. A table row, a JSON object and a block of `label: value` lines become a
record: what it is about, and a value for each label.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, Literal

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.claims import PAIR, split_statements
from proctor.judging.rule_judge.values import MONEY, PERIODS, Value, conflicts, find_values, same_value, units

TokenKind = Literal[
    "word", "name", "number", "date", "clock", "id", "negation", "modal", "quantifier", "limit", "relation",
    "condition",    "period", "function", "mark",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """One word or value of a statement."""

    text: str
    key: str
    kind: TokenKind
    value: Value | None = None

    @property
    def is_content(self) -> bool:
        return self.kind not in ("function", "mark", "condition")


Tokens = tuple[Token, ...]


def matches(claim: Token, source: Token) -> bool:
    """Whether the claim's token says the same as the source's, or less."""
    if claim.value is not None and source.value is not None:
        return same_value(claim.value, source.value)
    if claim.kind == "name" and source.kind == "name":
        # "Rossi" may stand for "Elena Rossi", but not the other way around.
        return claim.key == source.key or source.key.endswith(" " + claim.key)
    return claim.key == source.key


def excludes(claim: Token, source: Token) -> bool:
    """Whether the two fill the same slot and cannot both be true."""
    if claim.value is not None and source.value is not None:
        return conflicts(claim.value, source.value)
    if claim.kind != source.kind:
        return lexicon.excludes(claim.key, source.key)
    if claim.kind == "name":
        ours, theirs = claim.key.split(), source.key.split()
        if "".join(word[0] for word in ours) in theirs or "".join(word[0] for word in theirs) in ours:
            return False  # `LA` is Los Angeles
        return set(ours).isdisjoint(theirs) or (len(ours) == len(theirs) and ours != theirs)
    if claim.kind == "modal":
        return lexicon.MODALS[claim.key] > lexicon.MODALS[source.key]
    if claim.kind == "quantifier":
        share, other = lexicon.QUANTIFIERS[claim.key], lexicon.QUANTIFIERS[source.key]
        return share >= other + 2 or (share < 0 < other)
    return claim.kind == "period" or lexicon.excludes(claim.key, source.key)


_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_PLAIN = {ord(mark): plain for marks, plain in (("‘’ʼ´", "'"), ("“”„«»", '"'), ("—", " - ")) for mark in marks}


def fold(text: str) -> str:
    """The text without accents, invisible characters, typographic variants and the signs of Markdown."""
    if not text.isascii():
        text = text.translate(_PLAIN).translate(_INVISIBLE).replace("º", "°")
        text = unicodedata.normalize("NFKD", text)
        text = "".join(character for character in text if not unicodedata.combining(character))
    return text.replace("*", "").replace("`", "").replace("_", " ") if any(sign in text for sign in "*`_") else text


_CONTRACTIONS = (
    (re.compile(r"\bcan't\b", re.I), "can not"),
    (re.compile(r"\bwon't\b", re.I), "will not"),
    (re.compile(r"(?<=[a-z])\s?n't\b", re.I), " not"),
    (re.compile(r"\b(it|that|there|he|she|what|who|here)\s?'s\b", re.I), r"\1 is"),
    (re.compile(r"\bunited states(?: of america)?\b|(?-i:\bU\.\s?S\.(?:\s?A\.)?|\bUS\b)|(?<=\bthe )us\b", re.I), "USA"),
    (re.compile(r"\bunited kingdom\b|(?-i:\bU\.\s?K\.)", re.I), "UK"),
    (re.compile(r"'(?:re)\b", re.I), " are"),
    (re.compile(r"'ll\b", re.I), " will"),
    (re.compile(r"'ve\b", re.I), " have"),
    (re.compile(r"\bi'm\b", re.I), "I am"),
    (re.compile(r"(?<=\d)\s?[–-]\s?(?=\d+(?:\.\d+)?\s?(?:%|°|[a-z]))", re.I), " to "),
    (re.compile(r"(?<=\d)\s?–\s?(?=\d)"), " to "),
    (re.compile(r"(?<=[^\W\d])'s\b|(?<=s)'(?=\s|$)", re.I), ""),
    (re.compile(r"(?<=\d)\s?/\s?(?=(?:month|year|day|week|hour|person|user)\b)", re.I), " per "),
)
_OPENING = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|yup)\b[\s,.!:;-]+(?:(?:and|but|so)\s(?=it\b|they\b|he\b|she\b|the\b))?"
    r"|(?:no|nope|sure|well|oh|ah|absolutely|certainly|of course|correct|right|exactly|indeed)\s?[,.!:;-]+\s*)?"
    r"(?:\d+(?:\.\d+)+\.?\s+(?=(?-i:[A-Z][a-z])))?",
    re.IGNORECASE,
)
"""A yes or no before a statement, and the number of a section."""
_WORDS = re.compile(r"[^\W\d_]+|[,;:()]")


@lru_cache(maxsize=4096)
def read(text: str, names: frozenset[str] = frozenset()) -> Tokens:
    """The tokens of a statement. `names` are words that other sentences write with a capital."""
    text = _OPENING.sub("", fold(text))
    for pattern, replacement in _CONTRACTIONS:
        text = pattern.sub(replacement, text)
    values = find_values(text)
    tokens: list[Token] = []
    position = 0
    for value in [*values, None]:
        gap = text[position : value.start if value else len(text)]
        tokens += (_word(match[0]) for match in _WORDS.finditer(gap))
        if value:
            tokens.append(Token(value.text, _value_key(value), value.kind, value))
            position = value.end
    tokens = _with_prices(_with_periods(_with_phrases(tokens)))
    return tuple(_with_complements(_with_names(_with_verbs(tokens), names)))


def _value_key(value: Value) -> str:
    if value.kind == "id":
        return value.text.casefold()
    return f"{value.base:.10g} {value.unit}" if value.kind in ("number", "clock") else str(value.parts)


def _word(text: str) -> Token:
    if not text[0].isalpha():
        return Token(text, text, "mark")
    word = text.lower()
    if word in lexicon.BE:
        return Token(text, "be", "function")
    if word in lexicon.WAS:
        return Token(text, "was", "function")
    if word in ("has", "have"):
        return Token(text, "have", "function")
    if word in lexicon.NEGATIONS:
        return Token(text, "not", "negation")
    return Token(text, word, _kind(word))


def _kind(word: str) -> TokenKind:
    for kind, table in _KINDS:
        if word in table:
            return kind
    return "word"


_KINDS: tuple[tuple[TokenKind, Any], ...] = (
    ("modal", lexicon.MODALS),
    ("quantifier", lexicon.QUANTIFIERS),
    ("limit", lexicon.LIMITS),
    ("condition", lexicon.CONDITIONS),
    ("relation", lexicon.RELATIONS),
    ("function", lexicon.FUNCTION_WORDS),
)


@cache
def _phrases() -> dict[tuple[str, ...], list[Token]]:
    return {
        tuple(phrase.split()): [_phrase_word(word) for word in into.split()] for phrase, into in lexicon.PHRASES.items()
    }


def _phrase_word(word: str) -> Token:
    return _word(word) if word.isalpha() else Token(word, word, _kind(word))


def _with_phrases(tokens: list[Token]) -> list[Token]:
    """Replace the phrases of the lexicon, and drop articles."""
    words = [token.text.lower() for token in tokens]
    found: list[Token] = []
    index = 0
    while index < len(tokens):
        for length in (4, 3, 2, 1):
            into = _phrases().get(tuple(words[index : index + length]))
            if into is not None:
                text = " ".join(token.text for token in tokens[index : index + length])
                found += [replace(token, text=text) for token in into]
                index += length
                break
        else:
            found.append(tokens[index])
            index += 1
    return found


def _with_periods(tokens: list[Token]) -> list[Token]:
    """Read `per day`, `every day`, `a day` after a number, and `daily`; drop the other articles."""
    found: list[Token] = []
    for index, token in enumerate(tokens):
        word = token.text.lower()
        unit = word.removesuffix("s")
        if token.kind == "word" and unit in PERIODS and found and index:
            before = tokens[index - 1].text.lower()
            counted = before in ("a", "an") and any(each.kind == "number" for each in found[-5:])
            if before == "per" or (before in ("each", "every") and unit == word) or counted:
                if found[-1].text.lower() == before:
                    found.pop()
                found.append(Token(f"{before} {word}", f"per {unit}", "period"))
                continue
        if token.text == "A" and index > 0:
            token = replace(token, kind="name")  # `Plan A`
        if token.kind == "function" and word in lexicon.ARTICLES:
            continue
        found.append(token)
    return found


def _with_prices(tokens: list[Token]) -> list[Token]:
    """Read `is 6 euros` as `costs 6 euros`, and `in`, `on` and `at` a time as one word."""
    found = list(tokens)
    for index, token in enumerate(tokens[:-1]):
        if token.key in ("in", "on", "at") and tokens[index + 1].kind in ("date", "clock"):
            found[index] = replace(token, key="at")
        following = next((each for each in tokens[index + 1 :] if each.kind != "limit" and each.key != "about"), token)
        if token.key == "be" and following.value is not None and following.value.unit in MONEY:
            found[index] = Token(token.text, lexicon.COST, "function")
    return found


def _with_verbs(tokens: list[Token]) -> list[Token]:
    """Give words their keys; `did not open` is read as `not opened`, and `does not open` as `not open`."""
    found: list[Token] = []
    past = False
    for token in tokens:
        if token.key in ("do", "does", "did") and token.kind == "function":
            past = token.key == "did"
            continue
        if token.kind == "word" and "-" not in token.key and "+" not in token.key:
            key = lexicon.verb_key(token.key)
            token = replace(token, key=f"{key}+ed" if past and "+" not in key else key)
            past = False
        found.append(token)
    return found


def _with_names(tokens: list[Token], names: frozenset[str]) -> list[Token]:
    """Join runs of capitalized words to one name; at the start of a sentence only if it is a name elsewhere."""
    found: list[Token] = []
    run: list[Token] = []
    for index, token in enumerate([*tokens, Token("", "", "mark")]):
        capital = token.kind == "word" and token.text[:1].isupper()
        first = not any(each.kind != "mark" for each in tokens[:index])
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        starts = capital and (
            not first
            or token.text.lower() in names
            or (following is not None and following.kind == "word" and following.text[:1].isupper())
        )
        if starts:
            run.append(token)
            continue
        if run:
            text = " ".join(each.text for each in run)
            found.append(Token(text, text.lower(), "name"))
            run = []
        found.append(token)
    return found[:-1]


def _with_complements(tokens: list[Token]) -> list[Token]:
    """Read "closed" as "not open", and drop a double negation such as "not closed"."""
    found: list[Token] = []
    for token in tokens:
        opposite = lexicon.COMPLEMENTS.get(token.text.lower()) if token.kind == "word" else None
        if opposite is None:
            found.append(token)
        elif found and found[-1].kind == "negation":
            found[-1] = replace(_with_verbs([_word(opposite)])[0], text=token.text)
        else:
            found += [Token(token.text, "not", "negation"), replace(_with_verbs([_word(opposite)])[0], text=token.text)]
    return found


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """The words that texts write with a capital inside a sentence."""
    return frozenset(
        word.lower() for text in texts for word in re.findall(r"(?<=[a-z0-9,] )[A-Z][^\W\d_]+", fold(text))
    )


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a passage."""

    text: str
    tokens: Tokens


@dataclass(frozen=True, slots=True)
class Record:
    """A table row, a JSON object, or a block of `label: value` lines."""

    text: str
    identity: tuple[Tokens, ...]
    """What names the record: the first cell, an id, a name. One of them is enough."""
    type_words: frozenset[str]
    """Keys of words for what it is, which add nothing: `order`, `city`, the heading of the first column."""
    fields: tuple[tuple[Tokens, Tokens], ...]
    """A label and its value."""
    is_item: bool = False
    """Whether it is one of several, so that a claim must name it."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What passages state."""

    sentences: tuple[Sentence, ...] = ()
    records: tuple[Record, ...] = ()
    names: frozenset[str] = field(default_factory=frozenset)


@lru_cache(maxsize=64)
def read_sources(passages: tuple[str, ...], extra: tuple[str, ...] = ()) -> Sources:
    """The sentences and records of passages. `extra` are other texts that tell which words are names."""
    names = names_in([*passages, *extra])
    sentences: list[Sentence] = []
    records: list[Record] = []
    for passage in passages:
        records += _records(passage, names)
        texts = list(_json_texts(passage)) if _is_data(passage) else [passage]
        statements = [statement for text in texts for statement in split_statements(text)]
        sentences += [Sentence(text, tokens) for text in statements if (tokens := read(text, names))]
    return Sources(tuple(sentences), tuple(records), names)


def _json_texts(passage: str) -> Iterator[str]:
    """The values of a JSON document that are sentences rather than names: `{"result": "The shop opens at nine."}`."""
    try:
        values = [json.loads(passage)]
    except (ValueError, RecursionError):
        return
    while values:
        value = values.pop()
        if isinstance(value, (dict, list)):
            values += reversed(list(value.values()) if isinstance(value, dict) else value)
        elif isinstance(value, str) and len(value.split()) > 2:
            yield value


def _is_data(passage: str) -> bool:
    """Whether a passage has nothing but records: JSON, or only table rows and `label: value` lines."""
    lines = [line for line in passage.splitlines() if line.strip()]
    return passage.lstrip()[:1] in ("{", "[") or all(
        line.strip().startswith("|") or PAIR.fullmatch(line) for line in lines
    )


def _records(passage: str, names: frozenset[str]) -> Iterator[Record]:
    stripped = passage.strip()
    if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]"):
        try:
            yield from _json_records(json.loads(stripped), (), frozenset(), names, 0)
        except (ValueError, RecursionError):
            return
        return
    header: list[str] = []
    pairs: list[tuple[str, str]] = []
    for line in [*passage.splitlines(), ""]:
        row = line.strip()
        if row.startswith("|") and row.endswith("|") and len(row) > 1:
            cells = [cell.strip() for cell in row.strip("|").split("|")]
            if header and any(cell.strip(" -:") for cell in cells) and len(cells) == len(header):
                yield _record(cells[0], [header[0]], list(zip(header[1:], cells[1:], strict=True)), names, row)
            header = header or cells
            continue
        header = []
        if PAIR.fullmatch(line):
            label, _, value = re.sub(r"[*_`]", "", row.lstrip("-•* ")).replace(" = ", ": ", 1).partition(":")
            pairs.append((label, value.strip()))
        elif row == "" and pairs:
            yield _record(pairs[0][1] if len(pairs) > 1 else "", [pairs[0][0]], pairs, names, passage)
            pairs = []
    if pairs:
        yield _record(pairs[0][1] if len(pairs) > 1 else "", [pairs[0][0]], pairs, names, passage)


def _record(name: str, type_words: list[str], pairs: list[tuple[str, str]], names: frozenset[str], text: str) -> Record:
    keys = frozenset(token.key for word in type_words for token in read(word.lower()))
    fields = tuple(
        (read(_label_words(label).lower(), names), _cell(value, label, names)) for label, value in pairs if value
    )
    identity = (tokens,) if (tokens := _cell(name, "", names)) else ()
    return Record(text, identity, keys, fields)


def _cell(value: str, label: str, names: frozenset[str]) -> Tokens:
    """A value; a number gets the unit of its label, as in `temp_c` or `Weight (kg)`."""
    unit = _label_unit(label)
    if unit and re.fullmatch(r"-?\d+(?:[.,]\d+)*", value.strip()):
        value = f"{value} {unit}"
    # A capital at the start of a cell tells nothing, so a word in front hides it.
    return read(f"is {value}", names)[1:]


def _label_unit(label: str) -> str:
    last = re.findall(r"[a-z€$£%]+", _label_words(label).lower())[-1:]
    special = {"c": "°C", "f": "°F", "€": "€", "$": "dollars", "£": "£", "%": "%"}
    return special.get(last[0], last[0] if last[0] in units() and len(last[0]) > 1 else "") if last else ""


def _label_words(key: str) -> str:
    """A key as words: `orderTotal` and `order_total` are "order Total" and "order total"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key.replace("_", " ").replace("-", " "))


_WRAPPERS = frozenset("result results data response output items records rows tool".split())
_NAMING = re.compile(r"(?:^|_)(?:id|name|title|number|order|city|user|customer|product|item|sku|code|service)$", re.I)
_MAX_NESTING = 20


def _json_records(
    value: Any, outer: tuple[Tokens, ...], types: frozenset[str], names: frozenset[str], depth: int
) -> Iterator[Record]:
    if depth > _MAX_NESTING:
        return
    if isinstance(value, list):
        for item in value:
            for record in _json_records(item, outer, types, names, depth + 1):
                yield replace(record, is_item=record.is_item or len(value) > 1)
        return
    if not isinstance(value, dict):
        return
    scalars = {key: item for key, item in value.items() if not isinstance(item, (dict, list)) and item is not None}
    naming = [key for key, item in scalars.items() if _NAMING.search(key) and not isinstance(item, (bool, float))]
    first = next(iter(scalars), "")
    if not naming and isinstance(scalars.get(first), str):
        naming = [first] if all(each.kind in ("id", "name") for each in _cell(scalars[first], "", names)) else []
    own = tuple(_cell(str(scalars[key]), "", names) for key in naming)
    type_words = types | {token.key for key in naming for token in read(_label_words(key).lower())}
    fields = [(key, item) for key, item in scalars.items() if key != "tool"]
    for key, item in value.items():
        if isinstance(item, dict) and key not in _WRAPPERS:
            fields += [(f"{key} {inner}", each) for inner, each in _amounts(item) if not isinstance(each, (dict, list))]
    if fields:
        pairs = [(key, json.dumps(item) if isinstance(item, bool) else str(item)) for key, item in fields]
        record = _record("", [], pairs, names, json.dumps(value, ensure_ascii=False)[:300])
        yield replace(record, identity=own or outer, type_words=type_words)
    for key, item in value.items():
        if isinstance(item, (dict, list)):
            word = (
                frozenset() if key in _WRAPPERS else frozenset(token.key for token in read(_label_words(key).lower()))
            )
            yield from _json_records(item, own or outer, types | word, names, depth + 1)


def _amounts(item: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of a nested object; an amount and its currency or unit are one value."""
    currency = item.get("currency") or item.get("unit")
    for key, value in item.items():
        if currency and key in ("amount", "value", "price", "total") and isinstance(value, (int, float)):
            yield "", f"{value} {currency}"
        elif key not in ("currency", "unit"):
            yield key, value


def content(tokens: Sequence[Token]) -> list[Token]:
    """The tokens that carry content."""
    return [token for token in tokens if token.is_content]
