"""What a sentence states: the sentence itself and its clauses, each in the few ways to write it.

`In May, the shop was sold by Ann and bought by Ben` is read as clauses with a subject each, a leading part is moved to
the end, and a passive becomes an active. Claims and sentences of the passages are both written in all of these ways, so
that two that mean the same have one in common.

Leaving out whatever stands between commas would be wrong: most of it may be a condition, a place or a time for which
alone the rest is true. Only other clauses and the time of a past event are left out. Where a word limits the sentence
(if, or, according to) or may govern several clauses (`in winter, …`, `guests who …`, `ordered to …`), nothing is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, takewhile

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.grammar import (
    COPULAS,
    has_verb,
    is_bare,
    is_framed,
    is_limited,
    is_past_event,
    is_verb,
    joined_parts,
    subject,
    without_marks,
)
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens


def stated(tokens: Tokens) -> list[Tokens]:
    """Everything that a sentence states: its forms, and those of its clauses, also without the time of a past event."""
    is_whole = is_framed(tokens) and tokens[0].key not in lexicon.SPLITTERS  # but `because A, B` states A and B
    clauses = [] if is_whole else split_clauses(tokens)
    found = [form for text in (tokens, *clauses) for form in forms(text)]
    return list(dict.fromkeys(each for form in found for each in (form, *_without_time(form))))


def _without_time(tokens: Tokens) -> Iterator[Tokens]:
    """`The road was closed on Monday` states that it was closed; `the road is closed on Mondays` does not say it is."""
    if is_past_event(tokens):
        for index, (one, other) in enumerate(pairwise(tokens)):
            if one.key == "at" and other.kind in ("date", "clock"):
                yield tokens[:index] + tokens[index + 2 :]


def forms(tokens: Tokens) -> list[Tokens]:
    """The sentence in its ways to be written: as it is, with a leading part moved to the end, as an active."""
    found = [without_marks(each) for each in (tokens, _moved(tokens)) if each]
    return list(dict.fromkeys([*found, *(each for form in found if (each := _active(form)))]))


def _moved(tokens: Tokens) -> Tokens:
    """`In winter, the trail is closed` as `the trail is closed in winter`; also `if` and `because` clauses."""
    comma = next((index for index, token in enumerate(tokens) if token.key == ","), 0)
    rest = tokens[comma + 1 :]
    is_whole = has_verb(rest) or (rest and is_bare(rest[0]))
    return (*rest, *tokens[:comma]) if comma and is_framed(tokens) and is_whole else ()


def _active(tokens: Tokens) -> Tokens:
    """`B was bought by A in 2019` as `A bought B in 2019`."""
    keys = [token.key for token in tokens]
    place = next((i for i in range(1, len(keys) - 2) if keys[i] in COPULAS and keys[i + 1].endswith("+ed")), 0)
    if not place or "by" not in keys[place + 2 :]:
        return ()
    by = keys.index("by", place + 2)
    agent = tuple(takewhile(lambda each: each.kind in ("word", "name", "quantifier") or each.key == "of", tokens[by + 1 :]))
    verb = tokens[place + 1]
    form = verb if keys[place] == "was" else replace(verb, key=verb.key.removesuffix("+ed"))
    rest = tokens[by + 1 + len(agent) :]
    return (*agent, form, *tokens[:place], *tokens[place + 2 : by], *rest) if agent else ()


def split_clauses(tokens: Tokens) -> list[Tokens]:
    """The clauses of a sentence, each with its subject; empty if the sentence cannot be split safely.

    `The gate opens at 8 and closes at 20` is `the gate opens at 8` and `the gate closes at 20`. A clause is there with
    and without its last part if that adds to it.
    """
    joined = joined_parts(tokens)
    if is_limited(tokens) or len(joined) < 2 or _governs_more(joined[0][1]):
        return []
    if is_bare(joined[0][1][0]):
        return [part for _, part in joined if is_bare(part[0])]
    clauses = _split_statements(joined) if has_verb(joined[0][1]) else []
    # `Adults pay 9 euros and children pay 4 euros on weekends`: both may pay it on weekends, unless a comma parts them.
    whole = [one for one, other in pairwise([*clauses, ()]) if other[: len(one)] != one]
    places = [sum(token.key in _PLACING for token in clause) for clause in whole]
    return [] if places and places[-1] > min(places) and joined[-1][0] in ("and", "but") else clauses


_AND = Token("and", "and", "function")
_PLACING = PREPOSITIONS - {"of", "to", "by", "as", "from", "into", "onto"} | {"before", "after", "without"}
"""Prepositions of a time, a place or a purpose, which may belong to several clauses."""


def _governs_more(head: Tokens) -> bool:
    """Whether a word in the first clause may govern the next one, too: `ordered to pay`, `guests who book`."""
    verbs = [i for i, token in enumerate(head) if i and is_verb(token)]
    is_infinitive = any(one.key == "to" and other.kind == "word" and not other.article for one, other in pairwise(head))
    is_relative = any(token.key in ("who", "which", "that", "whose") for token in head)
    is_reduced = len(verbs) > 1 and head[verbs[0]].key.endswith("+ed") and not is_verb(head[verbs[0] - 1])
    return head[0].kind == "negation" or is_infinitive or is_relative or is_reduced


def _split_statements(joined: list[tuple[str, Tokens]]) -> list[Tokens]:
    """The clauses that the parts of a statement make up; empty if one of them lacks a subject."""
    head = joined[0][1]
    first = subject(head) if head[0].key not in (*PREPOSITIONS, "there") else ()
    helper = tuple(
        takewhile(lambda each: each.kind in ("modal", "negation") or each.key in COPULAS, head[len(first) :])
    )
    clauses = [head]
    for joint, part in joined[1:]:
        is_aside = joint == "," and part[0].key.endswith(("+ed", "+ing"))  # `…, given enough time`
        is_predicate = is_verb(part[0]) or (part[0].kind == "negation" and len(part) > 1 and is_verb(part[1]))
        is_clause = has_verb(part) and part[0].key not in PREPOSITIONS and part[0].kind != "relation"
        if is_predicate and (not first or (not is_aside and not _shares_only_subject(helper, part))):
            return []
        if is_predicate and not is_aside:
            is_bare_modal = lexicon.is_bare(part[0].text.lower()) and any(token.kind == "modal" for token in helper)
            needs_helper = part[0].key.endswith("+ed") or is_bare_modal
            clauses.append((*first, *(helper if needs_helper else ()), *part))
        elif is_clause and not is_aside:
            clauses.append(part)
            first, helper = subject(part), ()
        else:
            whole = (*clauses[-1], _AND, *part)
            clauses[-1:] = [clauses[-1], whole] if _is_free(joint, clauses[-1], part) else [whole]
    return clauses


def _shares_only_subject(helper: Tokens, part: Tokens) -> bool:
    """Whether only the subject is missing: not in `must not drink and drive`, `orders placed and paid by card …`."""
    is_participle = part[0].key.endswith("+ed")
    is_denied = any(token.kind == "negation" for token in helper)
    continues = is_participle or lexicon.is_bare(part[0].text.lower())
    return not (is_denied and continues) and not (is_participle and has_verb(part))


def _is_free(joint: str, before: Tokens, part: Tokens) -> bool:
    """Whether a part without a verb does not limit what comes before it: `open on Mondays and on Tuesdays`."""
    is_sum = before[-1].kind in ("number", "period") or lexicon.excludes(before[-1].key, part[-1].key)
    is_placed = any(token.key in PREPOSITIONS for token in part)  # not `open and free on Sundays`
    is_added = joint.endswith("and") and (part[0].key in PREPOSITIONS or not is_placed) and part[0].kind != "negation"
    return is_added and not is_sum  # not `10 euros and a fee`, `red and white`
