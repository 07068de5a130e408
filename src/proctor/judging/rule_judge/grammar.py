"""What the tokens of a sentence are: its verb, its subject, its parts, and whether something limits it.

A sentence is read as a core (subject, verb, object) and the parts after it, each of which starts with a preposition, a
relation or a condition: `the gate opens | at 8 | on Mondays | if it is dry`. Commas and words such as `and` join parts
that may be clauses themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens

COPULAS = ("be", "was")
RESTRICTING = ("negation", "modal", "quantifier", "limit", "condition", "relation")
"""Kinds of tokens that may restrict the rest of the sentence."""


def is_verb(token: Token) -> bool:
    """Whether the token can be the verb of a sentence."""
    if token.kind == "modal" or token.key in (*COPULAS, "have", "had", lexicon.COST):
        return True
    return token.kind == "word" and (token.key.endswith("+ed") or token.key in lexicon.VERBS)


def has_verb(tokens: Sequence[Token]) -> bool:
    """Whether there is a verb after the first token."""
    return any(map(is_verb, tokens[1:]))


def has_finite_verb(tokens: Sequence[Token]) -> bool:
    """Whether there is a verb that cannot be a noun: with an ending, a modal verb, a form of `be` or `have`."""
    return any(
        is_verb(token) and not (token.kind == "word" and lexicon.is_bare(token.text.lower())) for token in tokens
    )


def is_bare(token: Token) -> bool:
    """Whether the word is a verb without an ending, as a command starts with: `Hold the button`."""
    is_verb_form = token.key in lexicon.VERBS and lexicon.is_bare(token.text.lower())
    return token.kind == "word" and is_verb_form and not token.article


def subject(tokens: Sequence[Token]) -> Tokens:
    """The tokens before the verb; empty if there is no verb."""
    place = next((index for index, token in enumerate(tokens) if index and is_verb(token)), 0)
    return tuple(each for each in tokens[:place] if each.kind not in ("mark", "negation"))


def without_marks(tokens: Sequence[Token]) -> Tokens:
    """The tokens without marks, and without words that change nothing."""
    return tuple(token for token in tokens if token.kind != "mark" and token.key not in lexicon.HARMLESS)


def is_limited(tokens: Sequence[Token]) -> bool:
    """Whether parts of the sentence are not stated on their own: conditions, alternatives, reported speech."""
    return any(token.key.partition("+")[0] in _LIMITING or token.text.lower() in _LIMITING for token in tokens)


_LIMITING = (
    lexicon.ATTRIBUTIONS | frozenset(map(lexicon.stem, lexicon.ATTRIBUTIONS)) | lexicon.CONDITIONS | {"notonly", ":"}
)


def is_framed(tokens: Tokens) -> bool:
    """Whether the sentence starts with a time, a place or a condition, which may hold for what follows it as well."""
    return bool(tokens) and (starts_adjunct(tokens, 0) or tokens[0].kind in ("date", "condition"))


def is_past_event(tokens: Tokens) -> bool:
    """Whether the sentence says that something happened once, without an amount: `the road was closed on Monday`."""
    verbs = [token for token in tokens if is_verb(token)]
    is_past = bool(verbs) and (verbs[0].key == "was" or (len(verbs) == 1 and verbs[0].key.endswith("+ed")))
    return is_past and not any(token.kind in (*RESTRICTING, "number") or token.key == "be" for token in tokens)


def is_fragment(tokens: Tokens) -> bool:
    """Whether the tokens only name something, as the items of a list do."""
    return bool(tokens) and not has_finite_verb(tokens) and not is_bare(tokens[0]) and not is_limited(tokens)


def starts_adjunct(tokens: Tokens, place: int) -> bool:
    token = tokens[place]
    is_preposition = token.key in PREPOSITIONS and token.key not in ("of", "as")
    return (is_preposition or token.key == "at" or token.kind in ("condition", "relation")) and token.key != "than"


def split_adjuncts(tokens: Tokens) -> tuple[Tokens, list[Tokens]]:
    """The sentence up to its object, and each part after it: `at 8`, `without a ticket`, `if it is dry`."""
    verb = next((index for index, token in enumerate(tokens) if is_verb(token) and (index or is_bare(token))), None)
    if verb is None:
        return tokens, []
    starts = [i for i in range(verb + 1, len(tokens)) if starts_adjunct(tokens, i)]
    # A clause such as `if it rains on Monday` is one part with the rest of the sentence.
    clause = next((i for i in starts if tokens[i].kind in ("condition", "relation") and has_verb(tokens[i:])), None)
    starts = [i for i in starts if clause is None or i <= clause]
    first, *parts = _cut(tokens, starts)
    return first, parts


def split_parts(part: Tokens) -> list[Tokens]:
    """A part without a verb: what comes before its first preposition, and each part that starts with one."""
    return _cut(part, [i for i in range(len(part)) if starts_adjunct(part, i)])


def _cut(tokens: Tokens, starts: Sequence[int]) -> list[Tokens]:
    """What comes before the first start, and each part from one start to the next; `from 8 to 10` is one part."""
    starts = [
        i
        for number, i in enumerate(starts)
        if not (tokens[i].key == "to" and number and tokens[starts[number - 1]].key == "from")
    ]
    return [tokens[: starts[0]] if starts else tokens, *(tokens[a:b] for a, b in pairwise([*starts, len(tokens)]))]


def joined_parts(tokens: Tokens) -> list[tuple[str, Tokens]]:
    """The tokens between commas and words such as `and`, each with the joint before it; `2 and 8` stays together."""
    joined: list[tuple[str, Tokens]] = []
    joint, part = "", list[Token]()
    for index, token in enumerate([*tokens, Token("", "", "mark")]):
        around = [each.value for each in (*tokens[index - 1 : index], *tokens[index + 1 : index + 2])]
        is_range = len(around) == 2 and all(around)
        if token.kind == "mark" or (token.key in lexicon.SPLITTERS and not (token.key == "and" and is_range)):
            joined += [(joint, tuple(part))] if part else []
            joint, part = token.key if part else joint + token.key, []
        else:
            part.append(token)
    return joined


def parts(tokens: Tokens) -> list[Tokens]:
    """The parts between commas and words such as `and`."""
    return [part for _, part in joined_parts(tokens)]
