"""What a sentence states: the sentence itself and its clauses, each in the few ways to write it.

`In May, the shop was sold by Ann and bought by Ben` is read as clauses with a subject each, a leading part is moved to
the end, and a passive becomes an active. Claims and sentences of the passages are both written in all of these ways, so
that two that mean the same have one in common.

Leaving out whatever stands between commas would be wrong: most of it may be a condition, a place or a time for which
alone the rest is true. Only other clauses are left out. Where a word limits the sentence (if, or, according to) or may
govern several clauses (`in winter, …`, `guests who …`, `ordered to …`), nothing is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, takewhile

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.reading import Token, Tokens

_COPULAS = ("be", "was")
_AND = Token("and", "and", "function")
_LIMITING = frozenset(map(lexicon.stem, lexicon.ATTRIBUTIONS)) | lexicon.CONDITIONS | {"notonly", ":"}
"""Stems for conditions, alternatives and reported speech: parts of a sentence that has one are not stated."""
_PLACING = lexicon.PREPOSITIONS - {"of", "to", "by", "as", "from", "into", "onto"} | {"before", "after", "without"}
"""Prepositions of a time, a place or a purpose, which may belong to several clauses."""


def is_verb(token: Token) -> bool:
    """Whether the token can be the verb of a sentence."""
    if token.kind == "modal" or token.key in (*_COPULAS, "have", "had", lexicon.COST):
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


def is_framed(tokens: Tokens) -> bool:
    """Whether the sentence starts with a time, a place or a condition, which may hold for all that follows it."""
    return bool(tokens) and (
        tokens[0].key in lexicon.PREPOSITIONS or tokens[0].kind in ("date", "condition", "relation")
    )


@lru_cache(maxsize=4096)
def stated(tokens: Tokens) -> list[Tokens]:
    """Everything that a sentence states: its forms, and those of its clauses."""
    is_whole = is_framed(tokens) and tokens[0].key not in lexicon.SPLITTERS  # but `because A, B` states A and B
    clauses = [] if is_whole else split_clauses(tokens)
    return list(dict.fromkeys(form for text in (tokens, *clauses) for form in forms(text)))


def forms(tokens: Tokens) -> list[Tokens]:
    """The sentence in its ways to be written: as it is, with a leading part moved to the end, as an active."""
    found = [without_marks(each) for each in (tokens, _moved(tokens)) if each]
    return list(dict.fromkeys([*found, *(each for form in found if (each := _active(form)))]))


def _moved(tokens: Tokens) -> Tokens:
    """`In winter, the trail is closed` as `the trail is closed in winter`; also `if` and `because` clauses."""
    comma = next((index for index, token in enumerate(tokens) if token.key == ","), 0)
    rest = tokens[comma + 1 :]
    is_clause = has_verb(rest) or any(map(is_bare, rest[:1]))
    return (*rest, *tokens[:comma]) if comma and is_framed(tokens) and is_clause else ()


def _active(tokens: Tokens) -> Tokens:
    """`B was bought by A in 2019` as `A bought B in 2019`."""
    keys = [token.key for token in tokens]
    by = keys.index("by") if "by" in keys else 0
    place = next((i for i in range(1, by - 1) if keys[i] in _COPULAS and keys[i + 1].endswith("+ed")), 0)
    if not place:
        return ()
    agent = [*takewhile(lambda each: each.kind in ("word", "name", "quantifier") or each.key == "of", tokens[by + 1 :])]
    verb = tokens[place + 1]
    form = verb if keys[place] == "was" else replace(verb, key=verb.key.removesuffix("+ed"))
    rest = tokens[by + 1 + len(agent) :]
    return (*agent, form, *tokens[:place], *tokens[place + 2 : by], *rest) if agent else ()


def split_clauses(tokens: Tokens) -> list[Tokens]:
    """The clauses of a sentence, each with its subject; empty if it cannot be split safely."""
    joined = _joined_parts(tokens)
    if len(joined) < 2 or any(token.key.partition("+")[0] in _LIMITING for token in tokens):
        return []
    head = joined[0][1]
    if is_bare(head[0]):
        return [part for _, part in joined if is_bare(part[0])]
    clauses = [] if _governs_more(head) else _split_statements(joined)
    # `Adults pay 9 euros and children pay 4 euros on weekends`: both may pay it on weekends, unless a comma parts them.
    places = [sum(token.key in _PLACING for token in clause) for clause in clauses]
    return [] if places and places[-1] > min(places) and joined[-1][0] in ("and", "but") else clauses


def _joined_parts(tokens: Tokens) -> list[tuple[str, Tokens]]:
    """The tokens between commas and words such as `and`, each with the joint before it."""
    joined: list[tuple[str, Tokens]] = []
    joint, part = "", list[Token]()
    for token in (*tokens, Token("", "", "mark")):
        if token.kind == "mark" or token.key in lexicon.SPLITTERS:
            joined += [(joint, tuple(part))] if part else []
            joint, part = token.key if part else joint + token.key, []
        else:
            part.append(token)
    return joined


def _governs_more(head: Tokens) -> bool:
    """Whether a word in the first clause may govern the next one, too: `guests who book`, `orders placed now are`."""
    verbs = [i for i, token in enumerate(head) if i and is_verb(token)]
    is_relative = any(token.key in ("who", "which", "that", "whose") for token in head)
    is_reduced = len(verbs) > 1 and head[verbs[0]].key.endswith("+ed") and not is_verb(head[verbs[0] - 1])
    return head[0].kind == "negation" or is_relative or is_reduced or not verbs


def _split_statements(joined: Sequence[tuple[str, Tokens]]) -> list[Tokens]:
    """The clauses that the parts of a statement make up; empty if one of them lacks a subject."""
    clauses = [joined[0][1]]
    first = subject(clauses[0])
    after = clauses[0][len(first) :]
    helper = [*takewhile(lambda each: each.kind in ("modal", "negation") or each.key in _COPULAS, after)]
    for number, (joint, part) in enumerate(joined[1:], 2):
        # `…, and, in summer, closes at 8`; `valid on buses and trains within the city`, where `trains` is not a verb
        may_be_nouns = all(token.kind == "word" and token.text.endswith("s") for token in (clauses[-1][-1], part[0]))
        if may_be_nouns or ("," in joint and is_framed(part) and number < len(joined)):
            return []
        if is_verb(part[0]) or (part[0].kind == "negation" and any(map(is_verb, part[1:2]))):
            word = part[0].text.lower()
            is_participle = part[0].key.endswith("+ed") and word not in lexicon.PAST_FORMS
            is_plain = lexicon.is_bare(word)
            # Not `…, given enough time`, `tickets placed and paid by card are …`
            if not first or (is_participle and (joint == "," or has_verb(part))):
                return []
            # `must not drink and drive`, `ordered the firm to pay and leave`
            pairs = pairwise(clauses[-1])
            is_infinitive = any(a.key == "to" and b.kind == "word" and not b.article for a, b in pairs)
            is_denied = any(token.kind == "negation" for token in helper)
            if (is_infinitive or is_denied) and (is_participle or is_plain):
                return []
            is_helped = is_participle or (is_plain and any(token.kind == "modal" for token in helper))
            clauses.append((*first, *(helper if is_helped else ()), *part))
        elif has_verb(part) and not is_framed(part) and not part[0].key.endswith("+ing"):  # `…, starting on the day …`
            clauses.append(part)
            first, helper = subject(part), []
        else:
            clauses[-1] = (*clauses[-1], _AND, *part)
    return clauses
