"""What else a sentence states: its clauses, its parts in another order, and its passive as an active.

Each function takes tokens and returns other tokens with the same meaning, or a part of it that is stated on its own.
Where a word limits the sentence (if, or, according to), nothing is split off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from proctor.judging.rule_judge.lexicon import (
    ATTRIBUTIONS,
    BLOCKERS,
    COST,
    POSSESSIVES,
    PREPOSITIONS,
    PRONOUNS,
    SPLITTERS,
    VERBS,
    stem,
)
from proctor.judging.rule_judge.reading import Token, Tokens

PERSONS = PRONOUNS | {"you", "we", "i"}
_VERB_STEMS = frozenset(stem(verb) for verb in VERBS)


def is_verb(token: Token) -> bool:
    """Whether the token can be the verb of a sentence."""
    if token.kind == "modal" or token.key in ("be", "was", "have", "had", COST):
        return True
    return token.kind == "word" and (token.key.endswith("+ed") or token.key.partition("+")[0] in _VERB_STEMS)


def subject(tokens: Sequence[Token]) -> Tokens:
    """The tokens before the verb; empty if there is no verb."""
    for index, token in enumerate(tokens):
        if index and is_verb(token):
            return tuple(each for each in tokens[:index] if each.kind not in ("mark", "negation"))
    return ()


def without_marks(tokens: Sequence[Token]) -> Tokens:
    return tuple(token for token in tokens if token.kind != "mark")


def is_limited(tokens: Sequence[Token]) -> bool:
    """Whether parts of the sentence are not stated on their own: conditions, alternatives, reported speech."""
    words = BLOCKERS | ATTRIBUTIONS
    return any(token.kind == "condition" or token.key in words or token.text.lower() in words for token in tokens)


def variants(tokens: Tokens) -> list[Tokens]:
    """The whole sentence in its ways to be written: as it is, with a leading part moved to the end, as an active."""
    found = [without_marks(tokens)]
    if moved := _moved(tokens):
        found.append(moved)
    return found + [active for each in found if (active := _active(each))]


@lru_cache(maxsize=1 << 13)
def stated(tokens: Tokens) -> list[Tokens]:
    """Everything that a sentence states: its variants, and those of its clauses."""
    found = variants(tokens)
    plain = without_parentheses(tokens)
    if plain != tokens:
        found += variants(plain)
    for clause in (*split_clauses(plain), *_prefixes(plain)):
        found += variants(clause)
    return list(dict.fromkeys(found))


def without_parentheses(tokens: Tokens) -> Tokens:
    """The tokens without what is in parentheses."""
    depth = 0
    kept = []
    for token in tokens:
        depth += token.key == "("
        if not depth:
            kept.append(token)
        depth -= token.key == ")" and depth > 0
    return tuple(kept)


def _moved(tokens: Tokens) -> Tokens:
    """`In winter, the trail is closed` as `the trail is closed in winter`; also `if` and `because` clauses."""
    comma = next((index for index, token in enumerate(tokens) if token.key == ","), 0)
    first = tokens[0] if tokens else None
    if not first or not (first.key in PREPOSITIONS or first.kind in ("condition", "relation", "date")):
        return ()
    if not comma:  # `After the last attempt it stops`, `On Sundays the shop is open`
        is_time = len(tokens) > 2 and tokens[1].kind in ("date", "clock")
        comma = 2 if is_time else next((i for i, token in enumerate(tokens) if i > 1 and token.key in PERSONS), 0)
        rest = tokens[comma:]
    else:
        rest = tokens[comma + 1 :]
    if not comma or any(token.kind == "mark" for token in rest) or not any(is_verb(token) for token in rest[1:]):
        return ()
    return (*rest, *tokens[:comma])


def _active(tokens: Tokens) -> Tokens:
    """`B was bought by A in 2019` as `A bought B in 2019`."""
    for index in range(1, len(tokens) - 3):
        verb = tokens[index + 1]
        if tokens[index].key not in ("be", "was") or not verb.key.endswith("+ed"):
            continue
        by = next((place for place in range(index + 2, len(tokens) - 1) if tokens[place].key == "by"), 0)
        if not by or any(token.kind in ("negation", "modal") for token in tokens[:index]):
            return ()
        end = by + 1
        while end < len(tokens) and (tokens[end].kind in ("word", "name", "quantifier") or tokens[end].key == "of"):
            end += 1
        if end == by + 1:
            return ()
        form = verb if tokens[index].key == "was" else replace(verb, key=verb.key.removesuffix("+ed"))
        return (*tokens[by + 1 : end], form, *tokens[:index], *tokens[index + 2 : by], *tokens[end:])
    return ()


def split_clauses(tokens: Tokens) -> list[Tokens]:
    """The clauses of a sentence, each with its subject; the sentence alone if it cannot be split safely."""
    whole = [without_marks(tokens)]
    if is_limited(tokens):
        return whole
    parts = _parts(tokens)
    if len(parts) < 2 or not any(is_verb(token) for token in parts[0][1:]):
        return whole
    first = subject(parts[0])
    clauses: list[Tokens] = []
    for part in parts:
        if not part:
            continue
        if is_verb(part[0]) or (part[0].kind == "negation" and len(part) > 1 and is_verb(part[1])):
            if not first or first[0].key == "there":
                return whole
            helper = [token for token in parts[0][len(first) :][:1] if token.key in ("be", "was")]
            clauses.append((*first, *(helper if part[0].key.endswith("+ed") else ()), *part))
        elif any(is_verb(token) for token in part[1:]) and part[0].kind != "function":
            clauses.append(part)
        elif any(is_verb(token) for token in part[1:]) and part[0].key in PRONOUNS | POSSESSIVES | {"you", "we"}:
            clauses.append((*first, *part[1:]) if part[0].key in PRONOUNS and first else part)
        elif clauses:
            clauses[-1] = (*clauses[-1], Token("and", "and", "function"), *part)
        else:
            return whole
    return clauses


def _parts(tokens: Tokens) -> list[Tokens]:
    """The tokens between commas and words such as `and`; `between 2 and 8` stays together."""
    parts: list[list[Token]] = [[]]
    for index, token in enumerate(tokens):
        if token.kind == "mark" or (token.key in SPLITTERS and not _is_range(tokens, index)):
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts if part]


def _prefixes(tokens: Tokens) -> Iterator[Tokens]:
    """The beginnings of a sentence that it states: `closed on Mondays and on holidays` states the first of both."""
    for index, token in enumerate(tokens):
        if (token.kind != "mark" and token.key not in SPLITTERS) or _is_range(tokens, index):
            continue
        kept, left_out = tokens[:index], tokens[index + 1 :]
        while left_out and (left_out[0].kind == "mark" or left_out[0].key in SPLITTERS):
            token, left_out = left_out[0], left_out[1:]
        if any(map(is_verb, kept[1:])) and left_out and _is_apart(token, kept, left_out):
            yield kept


def _is_apart(joint: Token, kept: Tokens, left_out: Tokens) -> bool:
    """Whether what follows `joint` does not limit what comes before: `open, but only for members` is not `open`."""
    if is_limited(left_out) or any(token.key in ("either", "neither", "whether", "not-only", "both") for token in kept):
        return False
    first, following = left_out[0], left_out[1:2]
    if first.kind == "negation" and following:  # `waterproof but not windproof`
        return following[0].key not in PREPOSITIONS or any(token.key == following[0].key for token in kept)
    if (
        joint.key == "and"
        or first.key in ("which", "who", "whose")
        or first.text.lower() in ("including", "especially")
    ):
        return True
    starts_clause = (
        first.key not in PREPOSITIONS and first.kind not in ("limit", "relation") and "+ing" not in first.key
    )
    return starts_clause and any(token.key in ("be", "was", "have", COST) or is_verb(token) for token in left_out)


def _is_range(tokens: Tokens, index: int) -> bool:
    """Whether an `and` joins two values, as in `between 2 and 8`."""
    around = tokens[index - 1 : index] + tokens[index + 1 : index + 2]
    is_between = any(token.key == "between" for token in tokens[max(0, index - 6) : index])
    return tokens[index].key == "and" and (is_between or (len(around) == 2 and all(each.value for each in around)))
