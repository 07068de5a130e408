"""What the tokens of a sentence are: its verb, its subject, its parts, and whether something limits it."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens

COPULAS = ("be", "was")
_LIMITING = (
    lexicon.ATTRIBUTIONS | frozenset(map(lexicon.stem, lexicon.ATTRIBUTIONS)) | lexicon.CONDITIONS | {"notonly", ":"}
)
_RESTRICTING = ("negation", "modal", "quantifier", "limit", "condition", "relation", "number")


def is_verb(token: Token) -> bool:
    """Whether the token can be the verb of a sentence."""
    if token.kind == "modal" or token.key in (*COPULAS, "have", "had", lexicon.COST):
        return True
    return token.kind == "word" and (token.key.endswith("+ed") or token.key in lexicon.VERBS)


def has_verb(tokens: Sequence[Token]) -> bool:
    """Whether there is a verb after the first token."""
    return any(map(is_verb, tokens[1:]))


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


def is_framed(tokens: Tokens) -> bool:
    """Whether the sentence starts with a time, a place or a condition, which may hold for all that follows it."""
    return bool(tokens) and (tokens[0].key in PREPOSITIONS or tokens[0].kind in ("date", "condition", "relation"))


def is_past_event(tokens: Tokens) -> bool:
    """Whether the sentence says that something happened once, without an amount: `the road was closed on Monday`."""
    verbs = [token for token in tokens if is_verb(token)]
    is_past = bool(verbs) and (verbs[0].key == "was" or (len(verbs) == 1 and verbs[0].key.endswith("+ed")))
    return is_past and not any(token.kind in _RESTRICTING or token.key == "be" for token in tokens)


def joined_parts(tokens: Tokens) -> list[tuple[str, Tokens]]:
    """The tokens between commas and words such as `and`, each with the joint before it; `2 and 8` stays together."""
    joined: list[tuple[str, Tokens]] = []
    joint, part = "", list[Token]()
    for index, token in enumerate([*tokens, Token("", "", "mark")]):
        is_range = token.key == "and" and all(each.value for each in (*tokens[index - 1 : index], *tokens[index + 1 :][:1]))
        if token.kind == "mark" or (token.key in lexicon.SPLITTERS and not is_range):
            joined += [(joint, tuple(part))] if part else []
            joint, part = token.key if part else joint + token.key, []
        else:
            part.append(token)
    return joined
