"""What else a sentence states: its clauses, its parts in another order, its passive as an active.

Each function takes tokens and returns other tokens with the same meaning, or a part of it that is stated on its own.
Where a word limits the sentence (if, or, according to), nothing is split off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

from proctor.judging.rule_judge.lexicon import (
    ATTRIBUTIONS,
    CONDITIONS,
    COST,
    HARMLESS,
    PREPOSITIONS,
    SPLITTERS,
    VERBS,
)
from proctor.judging.rule_judge.reading import Token, Tokens

_COPULAS = ("be", "was")


def is_verb(token: Token) -> bool:
    """Whether the token can be the verb of a sentence."""
    if token.kind == "modal" or token.key in (*_COPULAS, "have", "had", COST):
        return True
    return token.kind == "word" and (token.key.endswith("+ed") or token.key.partition("+")[0] in VERBS)


def has_verb(tokens: Sequence[Token]) -> bool:
    """Whether there is a verb after the first token."""
    return any(map(is_verb, tokens[1:]))


def subject(tokens: Sequence[Token]) -> Tokens:
    """The tokens before the verb; empty if there is no verb."""
    place = next((index for index, token in enumerate(tokens) if index and is_verb(token)), 0)
    return tuple(each for each in tokens[:place] if each.kind not in ("mark", "negation"))


def without_marks(tokens: Sequence[Token]) -> Tokens:
    """The tokens without marks, and without words that change nothing."""
    return tuple(token for token in tokens if token.kind != "mark" and token.key not in HARMLESS)


def is_limited(tokens: Sequence[Token]) -> bool:
    """Whether parts of the sentence are not stated on their own: conditions, alternatives, reported speech."""
    return any(token.key in _LIMITING or token.text.lower() in _LIMITING for token in tokens)


_LIMITING = ATTRIBUTIONS | CONDITIONS | {"notonly", ":"}


def forms(tokens: Tokens) -> list[Tokens]:
    """The sentence in its ways to be written: as it is, with a leading part moved to the end, as an active."""
    found = [without_marks(each) for each in (tokens, _moved(tokens)) if each]
    return found + [active for each in found if (active := _active(each))]


@lru_cache(maxsize=1 << 13)
def stated(tokens: Tokens) -> list[Tokens]:
    """Everything that a sentence states: its forms, and those of its clauses, also without the time of a past event."""
    texts = (tokens, *(version for versions in split_clauses(tokens) for version in versions))
    found = [form for text in texts for form in forms(text)]
    return list(dict.fromkeys(each for form in found for each in (form, *_without_time(form))))


def _without_time(tokens: Tokens) -> Iterator[Tokens]:
    """`The road was closed on Monday` states that it was closed; `the road is closed on Mondays` does not say it is."""
    is_past = any(token.key == "was" or token.key.endswith("+ed") for token in tokens) and all(
        token.key != "be" and token.kind not in ("negation", "modal", "quantifier", "limit", "condition")
        for token in tokens
    )
    for index, (one, other) in enumerate(pairwise(tokens)):
        if is_past and one.key == "at" and other.kind in ("date", "clock"):
            yield tokens[:index] + tokens[index + 2 :]


def _moved(tokens: Tokens) -> Tokens:
    """`In winter, the trail is closed` as `the trail is closed in winter`; also `if` and `because` clauses."""
    first = tokens[0] if tokens else None
    if not first or not (first.key in PREPOSITIONS or first.kind in ("condition", "relation", "date")):
        return ()
    comma = next((index for index, token in enumerate(tokens) if token.key == ","), 0)
    return (*tokens[comma + 1 :], *tokens[:comma]) if comma and has_verb(tokens[comma + 1 :]) else ()


def _active(tokens: Tokens) -> Tokens:
    """`B was bought by A in 2019` as `A bought B in 2019`."""
    keys = [token.key for token in tokens]
    place = next((i for i in range(1, len(keys) - 2) if keys[i] in _COPULAS and keys[i + 1].endswith("+ed")), 0)
    by = keys.index("by", place + 2) if place and "by" in keys[place + 2 :] else 0
    end = by + 1
    while by and end < len(tokens) and (tokens[end].kind in ("word", "name", "quantifier") or keys[end] == "of"):
        end += 1
    if end == by + 1:
        return ()
    verb = tokens[place + 1]
    form = verb if keys[place] == "was" else replace(verb, key=verb.key.removesuffix("+ed"))
    return (*tokens[by + 1 : end], form, *tokens[:place], *tokens[place + 2 : by], *tokens[end:])


def split_clauses(tokens: Tokens) -> list[list[Tokens]]:
    """The clauses of a sentence, each with its subject, as a list of versions: without its last parts, and whole.

    `The gate opens at 8 on Mondays and on holidays and closes at 20` has two clauses, the first one in two versions.
    Empty if the sentence cannot be split safely.
    """
    parts = _parts(tokens)
    if is_limited(tokens) or len(parts) < 2 or not has_verb(parts[0][1]):
        return []
    first = subject(parts[0][1]) if parts[0][1][0].key not in (*PREPOSITIONS, "there") else ()
    helper = [token for token in parts[0][1][len(first) :][:1] if token.key in _COPULAS]
    clauses: list[list[Tokens]] = []
    for joint, part in parts:
        is_predicate = is_verb(part[0]) or (part[0].kind == "negation" and len(part) > 1 and is_verb(part[1]))
        if is_predicate and not first:
            return []
        if is_predicate:
            clauses.append([(*first, *(helper if part[0].key.endswith("+ed") else ()), *part)])
        elif not clauses or (has_verb(part) and part[0].key not in PREPOSITIONS and part[0].kind != "relation"):
            clauses.append([part])
        else:
            whole = (*clauses[-1][-1], Token("and", "and", "function"), *part)
            clauses[-1] = [*clauses[-1], whole] if _is_free(joint, part) else [whole]
    # `Adults pay 9 euros and children pay 4 euros on weekends`: both may pay it on weekends, unless a comma parts them.
    places = [sum(token.key in _PLACING for token in versions[-1]) for versions in clauses]
    return [] if places and places[-1] > min(places) and parts[-1][0] in ("and", "but") else clauses


_PLACING = PREPOSITIONS - {"of", "to", "by", "as", "from", "into", "onto"} | {"before", "after", "without"}
"""Prepositions of a time, a place or a purpose, which may belong to several clauses."""


def _parts(tokens: Tokens) -> list[tuple[str, Tokens]]:
    """The tokens between commas and words such as `and`, each with the joint before it; `2 and 8` stays together."""
    parts: list[tuple[str, Tokens]] = []
    joint, part = "", list[Token]()
    for index, token in enumerate([*tokens, Token("", "", "mark")]):
        around = [each.value for each in (*tokens[index - 1 : index], *tokens[index + 1 : index + 2])]
        is_range = len(around) == 2 and all(around)
        if token.kind == "mark" or (token.key in SPLITTERS and not (token.key == "and" and is_range)):
            parts += [(joint, tuple(part))] if part else []
            joint, part = token.key if part else joint + token.key, []
        else:
            part.append(token)
    return parts


def _is_free(joint: str, part: Tokens) -> bool:
    """Whether a part does not limit what comes before it: `open, but only for members` is not `open`."""
    if part[0].kind == "negation":  # `waterproof but not windproof`, but not `open, not on Sundays`
        return part[1:2] != () and part[1].key not in PREPOSITIONS
    if joint.endswith("and"):  # `open on Mondays and on holidays`, but not `open and free on Sundays`
        return part[0].key in PREPOSITIONS or not any(token.key in PREPOSITIONS for token in part)
    if part[0].key in ("which", "who", "whose"):
        return True
    is_addition = joint == "," and part[0].kind in (
        "word",
        "name",
    )  # `… in Tupelo, Mississippi`, `… a band, formed in …`
    return is_addition and all(token.kind not in ("negation", "limit", "quantifier", "condition") for token in part)
