"""What a sentence states: the sentence itself, its clauses, and what it says of several things with one verb.

Leaving out whatever stands between commas would be wrong: most of it may be a condition, a place or a time for which
alone the rest is true. Only these are left out: other clauses, `and` with what follows, and the time of a past event.
Where a word limits the sentence (if, or, according to), nothing is left out, and where a word may govern several
clauses (`in winter, …`, `guests who …`, `ordered to …`), none of them is stated on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, takewhile

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.forms import forms, leading_part, rank
from proctor.judging.rule_judge.grammar import (
    COPULAS,
    RESTRICTING,
    has_verb,
    is_bare,
    is_fragment,
    is_framed,
    is_limited,
    is_past_event,
    is_verb,
    joined_parts,
    parts,
    split_adjuncts,
    split_parts,
    starts_adjunct,
    subject,
)
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens


def stated(tokens: Tokens) -> list[Tokens]:
    """Everything that a sentence states: its forms, and those of its parts, also without the time of a past event."""
    comma = leading_part(tokens)
    clauses = split_clauses(tokens)
    if comma and not has_verb(tokens[:comma]):  # `In May, A opened and B closed`: B may have closed at another time
        first_clause = split_clauses(tokens[comma + 1 :])[:1]
        clauses = [[(*tokens[: comma + 1], *version) for version in versions] for versions in first_clause]
    elif is_framed(tokens) and not comma:  # `On Sundays the shop is closed but the café is open`
        clauses = clauses[:1]
    texts = (tokens, *_completed(tokens), *(version for versions in clauses for version in versions))
    found = [form for text in texts for form in forms(text)]
    return list(dict.fromkeys(each for form in found for each in (form, *_without_time(form))))


def _without_time(tokens: Tokens) -> Iterator[Tokens]:
    """`The road was closed on Monday` states that it was closed; `the road is closed on Mondays` does not say it is."""
    if is_past_event(tokens):
        for index, (one, other) in enumerate(pairwise(tokens)):
            if one.key == "at" and other.kind in ("date", "clock"):
                yield tokens[:index] + tokens[index + 2 :]


def shortest(statements: Sequence[Tokens]) -> list[Tokens]:
    """The clauses of a sentence, without statements that consist of them."""
    keys = [frozenset(token.key for token in statement) - {"and", "but"} for statement in statements]
    parts = [frozenset().union(*(other for other in keys if other < own)) for own in keys]
    return [each for each, own, inner in zip(statements, keys, parts, strict=True) if inner != own]


def split_clauses(tokens: Tokens) -> list[list[Tokens]]:
    """The clauses of a sentence, each with its subject, as a list of versions: without its last parts, and whole.

    `The gate opens at 8 on Mondays and on holidays and closes at 20` has two clauses, the first one in two versions.
    Empty if the sentence cannot be split safely.
    """
    joined = joined_parts(tokens)
    if is_limited(tokens) or len(joined) < 2 or _governs_more(joined[0][1]):
        return []
    if is_bare(joined[0][1][0]):
        return [[part] for _, part in joined if is_bare(part[0])]
    clauses = _split_statements(joined) if has_verb(joined[0][1]) else []
    # `Adults pay 9 euros and children pay 4 euros on weekends`: both may pay it on weekends, unless a comma parts them.
    places = [sum(token.key in _PLACING for token in versions[-1]) for versions in clauses]
    return [] if places and places[-1] > min(places) and joined[-1][0] in ("and", "but") else clauses


def _split_statements(joined: Sequence[tuple[str, Tokens]]) -> list[list[Tokens]]:
    """The clauses that the parts of a statement make up; empty if one of them lacks a subject."""
    first, helper = _subject_and_auxiliaries(joined[0][1])
    clauses: list[list[Tokens]] = [[joined[0][1]]]
    for joint, part in joined[1:]:
        is_aside = joint == "," and part[0].key.endswith(("+ed", "+ing"))  # `…, given enough time`
        is_predicate = is_verb(part[0]) or (part[0].kind == "negation" and len(part) > 1 and is_verb(part[1]))
        is_clause = has_verb(part) and part[0].key not in PREPOSITIONS and part[0].kind != "relation"
        before = clauses[-1][-1]
        if is_predicate and (not first or (not is_aside and not _shares_only_subject(helper, part))):
            return []
        if is_predicate and not is_aside:
            is_bare_modal = lexicon.is_bare(part[0].text.lower()) and any(token.kind == "modal" for token in helper)
            needs_helper = part[0].key.endswith("+ed") or is_bare_modal
            clauses.append([(*first, *(helper if needs_helper else ()), *part)])
        elif is_clause and not is_aside:
            clauses.append(_complete(before, joint, part)[:1] or [part])
            first, helper = subject(part), ()
        else:
            whole = (*before, Token("and", "and", "function"), *part)
            # `10 euros and a fee`, `red and white` are one thing.
            is_sum = before[-1].kind in ("number", "period") or lexicon.excludes(before[-1].key, part[-1].key)
            clauses[-1] = [*clauses[-1], whole] if _is_free(joint, part) and not is_sum else [whole]
    return clauses


def _subject_and_auxiliaries(head: Tokens) -> tuple[Tokens, Tokens]:
    """The subject of the first clause for the others, and the modal verbs and forms of `be` after it."""
    first = subject(head) if head[0].key not in (*PREPOSITIONS, "there") else ()
    after = head[len(first) :]
    return first, tuple(takewhile(lambda each: each.kind in ("modal", "negation") or each.key in COPULAS, after))


def _shares_only_subject(helper: Tokens, part: Tokens) -> bool:
    """Whether only the subject is missing: not in `must not drink and drive`, `orders placed and paid by card …`."""
    is_participle = part[0].key.endswith("+ed")
    is_denied = any(token.kind == "negation" for token in helper)
    continues = is_participle or lexicon.is_bare(part[0].text.lower())
    return not (is_denied and continues) and not (is_participle and has_verb(part))


def _governs_more(head: Tokens) -> bool:
    """Whether a word in the first clause may govern the next one, too: `ordered to pay`, `guests who book`."""
    verbs = [i for i, token in enumerate(head) if i and is_verb(token)]
    is_infinitive = any(one.key == "to" and other.kind == "word" and not other.article for one, other in pairwise(head))
    is_relative = any(token.key in ("who", "which", "that", "whose") for token in head)
    is_reduced = len(verbs) > 1 and head[verbs[0]].key.endswith("+ed") and not is_verb(head[verbs[0] - 1])
    return head[0].kind == "negation" or is_infinitive or is_relative or is_reduced


_INCLUDING = lexicon.verb_key("including")
_PLACING = PREPOSITIONS - {"of", "to", "by", "as", "from", "into", "onto"} | {"before", "after", "without"}
"""Prepositions of a time, a place or a purpose, which may belong to several clauses."""


def _is_free(joint: str, part: Tokens) -> bool:
    """Whether a part does not limit what comes before it: `open, but only for members` is not `open`."""
    if part[0].kind == "negation":  # `waterproof but not windproof`, but not `open, not on Sundays`
        return part[1:2] != () and part[1].key not in PREPOSITIONS
    if part[0].key == _INCLUDING:
        return True
    # `open on Mondays and on holidays`, but not `open and free on Sundays`
    is_placed = any(token.key in PREPOSITIONS for token in part)
    return joint.endswith("and") and (part[0].key in PREPOSITIONS or not is_placed)


def _completed(tokens: Tokens) -> Iterator[Tokens]:
    """What a sentence states of several things or cases without repeating its verb.

    `Books are lent for 28 days, DVDs for 7 days`; `Adults pay 9 euros, children 4 euros`; `It is open until 8 on
    Mondays and until 6 on Fridays`; `It is waterproof but not windproof`; `The lid is steel, the base is not`.
    """
    joined = joined_parts(tokens)
    if is_limited(tokens) or len(joined) < 2 or is_framed(tokens) or _ends_in_frame(joined):
        return
    clause: Tokens = ()
    names: list[Tokens] = []
    for joint, part in joined:
        if has_verb(part) and not _is_ellipsis(part):
            clause, names = part, []
        elif clause:
            found = _complete(clause, joint, part)
            if not found and _is_name(part):
                names.append(part)  # `DVDs` of `DVDs and games for 7 days`
                continue
            yield from found
            if found and joint.endswith("and") and found[0][0] == part[0]:
                yield from (each for name in names for each in _complete(clause, joint, (*name, *_predicate(part))))
            yield from ((clause,) if found else ())
            clause, names = (clause if found else ()), []


def _ends_in_frame(joined: Sequence[tuple[str, Tokens]]) -> bool:
    """Whether the last part may hold for all before it: `Adults pay 9 euros, children 4 euros, on weekends`."""
    joint, part = joined[-1]
    return joint == "," and starts_adjunct(part, 0) and len(joined) > 2


def _complete(clause: Tokens, joint: str, part: Tokens) -> list[Tokens]:
    """The part of a sentence with the words of the clause before it that it needs; empty if that is not clear."""
    first = subject(clause)
    core, adjuncts = split_adjuncts(clause)
    if not first or core[: len(first)] != first:
        return []
    verbs = core[len(first) :]
    if _is_ellipsis(part):
        return [] if adjuncts else _with_complement(verbs, part)
    if any(token.kind == "negation" or token.text.lower() in lexicon.COMPLEMENTS for token in core):
        return []  # `it does not open at 8 but at 9`
    if joint.endswith("but") and part[0].kind == "negation":
        is_complement = not adjuncts and verbs[0].key in COPULAS and part[1].key not in _PLACING
        return [(*first, verbs[0], *part)] if is_complement else []  # `waterproof but not windproof`
    head, *rest = split_parts(part)
    ranks, others = ([rank(each) for each in group] for group in (adjuncts, rest))
    if not head:  # `until 8 on Mondays and until 6 on Fridays`
        is_parallel = len(rest) == len(adjuncts) and (ranks == others or len(rest) > 1)
        return [(*core, *part)] if is_parallel else []
    if ranks != others:
        return []
    if any(token.value for token in head):
        return _with_other_value(first, verbs, head, rest)
    is_case = bool(rest) and all(is_verb(token) for token in verbs) and _is_name(head)
    return [(*head, *verbs, *chain(*rest))] if is_case else []  # `books are lent for 28 days, DVDs for 7 days`


def _is_ellipsis(part: Tokens) -> bool:
    """Whether the part ends with the verb: `the base is`, `the base is not`."""
    *before, last = part
    return bool(before) and (last.key in COPULAS or (last.kind == "negation" and before[-1].key in COPULAS))


def _with_complement(verbs: Tokens, part: Tokens) -> list[Tokens]:
    """`The base is not` with the complement of `is steel`.

    Not with that of `is closed`, which is read as `is not open`: then it is not clear what `the other is not` denies.
    """
    plain = tuple(token for token in verbs if token.kind != "negation")
    is_clear = not any(token.text.lower() in lexicon.COMPLEMENTS for token in verbs)
    return [(*part, *plain[1:])] if plain and plain[0].key in COPULAS and is_clear else []


def _with_other_value(first: Tokens, verbs: Tokens, head: Tokens, rest: Sequence[Tokens]) -> list[Tokens]:
    """`Adults pay 9 euros, children 4 euros`, or without a name: `9 euros on weekdays and 12 euros on weekends`."""
    ours, theirs = (next((i for i, token in enumerate(each) if token.value), None) for each in (head, verbs))
    if ours is None or theirs is None or len(verbs) - theirs != len(head) - ours:
        return []
    one, other = head[ours].value, verbs[theirs].value
    is_same_kind = one is not None and other is not None and one.unit == other.unit
    name = head[:ours]
    if not is_same_kind or (name and not _is_name(name)):
        return []
    return [(*(name or first), *verbs[:theirs], *head[ours:], *chain(*rest))]


def _predicate(part: Tokens) -> Tokens:
    """The part after its name."""
    place = next((i for i, token in enumerate(part) if token.value or starts_adjunct(part, i)), len(part))
    return part[place:]


def _is_name(tokens: Tokens) -> bool:
    """Whether the tokens are only words and names: what something is called."""
    return bool(tokens) and all(token.kind in ("word", "name") and not token.key.endswith("+ed") for token in tokens)


def list_items(tokens: Tokens) -> list[Tokens]:
    """The items of `The box includes: a drone, two batteries and a charger`."""
    place = next((i for i, token in enumerate(tokens) if token.key == ":"), 0)
    heading, rest = tokens[:place], tokens[place + 1 :]
    if not heading or any(token.kind in RESTRICTING for token in heading) or not is_fragment(rest):
        return []
    items = parts(rest)
    return items if len(items) > 1 else []
