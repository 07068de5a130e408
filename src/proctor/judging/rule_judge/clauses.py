"""What else a sentence states: its clauses, its parts in another order, its passive as an active, what somebody is.

Each function takes tokens and returns other tokens with the same meaning, or a part of it that is stated on its own.
Leaving out whatever stands between commas would be wrong: most of it may be a condition, a place or a time for which
alone the rest is true. Only these are left out: other clauses, `and` with what follows, the time of a past event, and
what explains a noun in `X is a …`. Where a word limits the sentence (if, or, according to), nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens

_COPULAS = ("be", "was")
_RESTRICTING = ("negation", "modal", "quantifier", "limit", "condition", "relation")
"""Kinds of tokens that may restrict the rest of the sentence."""


def is_verb(token: Token) -> bool:
    """Whether the token can be the verb of a sentence."""
    if token.kind == "modal" or token.key in (*_COPULAS, "have", "had", lexicon.COST):
        return True
    return token.kind == "word" and (token.key.endswith("+ed") or token.key in lexicon.VERBS)


def has_verb(tokens: Sequence[Token]) -> bool:
    """Whether there is a verb after the first token."""
    return any(map(is_verb, tokens[1:]))


def subject(tokens: Sequence[Token]) -> Tokens:
    """The tokens before the verb; empty if there is no verb."""
    place = next((index for index, token in enumerate(tokens) if index and is_verb(token)), 0)
    return tuple(each for each in tokens[:place] if each.kind not in ("mark", "negation"))


def without_marks(tokens: Sequence[Token]) -> Tokens:
    """The tokens without marks, and without words that change nothing."""
    return tuple(token for token in tokens if token.kind != "mark" and token.key not in lexicon.HARMLESS)


def _is_limited(tokens: Sequence[Token]) -> bool:
    """Whether parts of the sentence are not stated on their own: conditions, alternatives, reported speech."""
    return any(token.key in _LIMITING or token.text.lower() in _LIMITING for token in tokens)


_LIMITING = lexicon.ATTRIBUTIONS | lexicon.CONDITIONS | {"notonly", ":"}


def forms(tokens: Tokens) -> list[Tokens]:
    """The sentence in its ways to be written: as it is, with a leading part moved to the end, as an active."""
    found = [without_marks(each) for each in (tokens, _moved(tokens)) if each]
    return found + [active for each in found if (active := _active(each))]


def stated(tokens: Tokens) -> list[Tokens]:
    """Everything that a sentence states: its forms, and those of its parts, also without the time of a past event."""
    comma = _leading_part(tokens)
    clauses = split_clauses(tokens)
    if comma and not has_verb(tokens[:comma]):  # `In May, A opened and B closed`: B may have closed at another time
        first_clause = split_clauses(tokens[comma + 1 :])[:1]
        clauses = [[(*tokens[: comma + 1], *version) for version in versions] for versions in first_clause]
    parts = (*_identities(tokens), *_relatives(tokens), *_shares(tokens), *_denials(tokens), *_passive(tokens))
    texts = (tokens, *parts, *(version for versions in clauses for version in versions))
    found = [form for text in texts for form in forms(text)]
    return list(dict.fromkeys(each for form in found for each in (form, *_without_time(form))))


def _without_time(tokens: Tokens) -> Iterator[Tokens]:
    """`The road was closed on Monday` states that it was closed; `the road is closed on Mondays` does not say it is."""
    is_past = any(token.key == "was" or token.key.endswith("+ed") for token in tokens)
    if is_past and not any(token.key == "be" or token.kind in _RESTRICTING for token in tokens):
        for index, (one, other) in enumerate(pairwise(tokens)):
            if one.key == "at" and other.kind in ("date", "clock"):
                yield tokens[:index] + tokens[index + 2 :]


def _identities(tokens: Tokens) -> Iterator[Tokens]:
    """`Ann Lee (born 1950), a nurse, is a poet, painter and singer who lives in Bern` as `Ann Lee is a poet`.

    What follows an indefinite noun cannot make it false that X is one: which one, by whom, what else. A place or time
    can (`the hall is a market on Mondays`), as can what follows `the` (`the longest river in Italy`). A remark between
    X and the verb goes only if it is another name or the years of a life: `soap, swallowed, is a poison`.
    """
    place = next((index for index, token in enumerate(tokens) if token.key in _COPULAS), 0)
    noun = tokens[place + 1 :]
    start = next((index for index, token in enumerate(tokens[:place]) if token.kind == "mark"), place)
    first, remark = tokens[:start], tokens[start:place]
    is_plain = bool(first) and not has_verb(first) and first[0].key not in PREPOSITIONS
    if not is_plain or not noun or not noun[0].article or any(token.kind in _RESTRICTING for token in first):
        return
    is_fact = not _is_limited([token for token in (*first, *noun) if token.key != "or"])
    if is_fact and (not remark or _is_other_name(remark)):
        yield (*first, tokens[place], *noun)
        for end in range(1, len(noun)) if noun[0].article in ("a", "an") else ():
            if _explains_noun(noun[:end], noun[end:]):
                yield (*first, tokens[place], *noun[:end])


def _relatives(tokens: Tokens) -> Iterator[Tokens]:
    """`Norda, which makes pumps, is small` as `Norda makes pumps` and `Norda is small`.

    Only between commas, after a subject or a name: `guests who smoke` are not all guests.
    """
    commas = [index for index, token in enumerate(tokens) if token.key == ","] + [len(tokens)]
    if _is_limited(tokens):
        return
    for place, end in pairwise(commas):
        first, last = tokens[place + 1 : place + 2], end == len(tokens)
        clause, rest = tokens[place + 2 : end], tokens[end + 1 :]
        if not first or first[0].key not in ("which", "who") or not clause or not _starts_predicate(clause):
            continue
        head = tokens[:place]
        is_subject = bool(head) and not has_verb(head) and head[0].key not in PREPOSITIONS
        if is_subject and _starts_predicate(rest):
            yield (*head, *clause)
            yield (*head, *rest)
        elif last and has_verb(head):
            yield head
            if head[-1].kind == "name":
                yield (head[-1], *clause)


def _starts_predicate(tokens: Tokens) -> bool:
    return bool(tokens) and (is_verb(tokens[0]) or (tokens[0].kind == "negation" and is_verb(tokens[1:2][-1])))


def _shares(tokens: Tokens) -> Iterator[Tokens]:
    """`It has 120 rooms, of which 30 have a balcony` as `30 of the 120 rooms have a balcony` and `30 rooms have …`."""
    keys = [token.key for token in tokens]
    place = next((i for i in range(1, len(keys) - 3) if keys[i : i + 3] == [",", "of", "which"]), 0)
    start = next((i for i in range(place - 1, -1, -1) if tokens[i].kind == "number"), place)
    rest = tokens[place + 3 :]
    if start < place and rest and rest[0].kind == "number" and has_verb(rest) and not _is_limited(tokens):
        yield tokens[:place]
        yield (rest[0], *tokens[start + 1 : place], *rest[1:])
        yield (Token("some", "some", "quantifier"), *tokens[start + 1 : place], *rest[1:])
        yield (rest[0], tokens[place + 1], *tokens[start + 1 : place], *rest[1:])
        yield (rest[0], tokens[place + 1], *tokens[start:place], *rest[1:])


def _denials(tokens: Tokens) -> Iterator[Tokens]:
    """`It protects against mumps, but not against flu` as `it does not protect against flu`."""
    keys = [token.key for token in tokens]
    place = next((i for i in range(1, len(keys) - 2) if keys[i : i + 2] == ["but", "not"]), 0)
    rest = tokens[place + 2 :]
    if not place or rest[0].key not in PREPOSITIONS | {"against", "with", "without"} or rest[0].key not in keys[:place]:
        return
    head = tokens[: place - 1 - keys[:place][::-1].index(rest[0].key)]
    verbs = [index for index, token in enumerate(head) if index and is_verb(token)]
    is_whole = not any(token.kind == "mark" for token in (*head, *rest)) and not _is_limited(tokens)
    if len(verbs) == 1 and is_whole:
        before = verbs[0] + (head[verbs[0]].key in _COPULAS or head[verbs[0]].kind == "modal")
        yield (*head[:before], tokens[place + 1], *head[before:], *rest)


def _is_other_name(remark: Tokens) -> bool:
    """Whether what stands between a subject and its verb is another name for it, or the years of a life."""
    words = [token for token in remark if token.kind != "mark" and token.key != "or"]
    is_name = any(token.text.lower() in _NAMING or token.article for token in words[:3])
    is_life = all(token.key == "to" or (token.value and any(token.value.parts[:1])) for token in words)
    is_safe = not any(token.kind in _RESTRICTING for token in words) and not _is_limited(words)
    return remark[-1].kind == "mark" and is_safe and (is_name or is_life)


_NAMING = frozenset("known called named born who which".split())


def _explains_noun(noun: Tokens, rest: Tokens) -> bool:
    """Whether the rest of `is a …` only says more about the noun: `… made of wood`, `… by Ann`, `…, which floats`."""
    if any(token.kind in _RESTRICTING or is_verb(token) for token in noun):
        return False
    first, second = rest[0], rest[1] if len(rest) > 1 else rest[0]
    is_participle = [token.key.endswith(("+ed", "+ing")) for token in (first, second)]
    if first.key == ",":  # not `a dog, or a cat`, nor `a market, on Mondays`, nor `a gift, assuming you book`
        is_scope = second.key in PREPOSITIONS or second.kind in _RESTRICTING or is_participle[1]
        return not is_scope and all(token.key != "or" for token in rest)
    is_somebody = second.kind == "name" or second.article != ""
    if first.key == "by":  # not `a café by day`
        return is_somebody
    if is_participle[0]:  # not `a computer animated film`
        return is_somebody or second.key in PREPOSITIONS
    return first.key in ("who", "which") or first.article == "that"


def _moved(tokens: Tokens) -> Tokens:
    """`In winter, the trail is closed` as `the trail is closed in winter`; also `if` and `because` clauses."""
    comma = _leading_part(tokens)
    return (*tokens[comma + 1 :], *tokens[:comma]) if comma else ()


def _leading_part(tokens: Tokens) -> int:
    """The place of the comma after a leading part such as `In winter, …` or `If it rains, …`; 0 if there is none."""
    if not tokens or not (tokens[0].key in PREPOSITIONS or tokens[0].kind in ("condition", "relation", "date")):
        return 0
    comma = next((index for index, token in enumerate(tokens) if token.key == ","), 0)
    return comma if has_verb(tokens[comma + 1 :]) else 0


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


def _passive(tokens: Tokens) -> Iterator[Tokens]:
    """`The library lends books for a week` as `books are lent for a week`.

    Only of a plain subject with `the`: `Bern bans smoking in bars` does not say that it is banned.
    """
    is_plain = len(tokens) > 2 and tokens[0].article == "the" and tokens[0].kind == "word" and tokens[1].kind == "word"
    is_free = (
        is_plain and not any(token.kind in (*_RESTRICTING, "mark") for token in tokens) and not _is_limited(tokens)
    )
    if not is_free or not is_verb(tokens[1]) or tokens[1].key in ("have", "had", "cost"):
        return
    end = next((i for i, token in enumerate(tokens) if i > 1 and token.kind not in ("word", "name")), len(tokens))
    if end > 2 and (end == len(tokens) or tokens[end].key in PREPOSITIONS) and not any(map(is_verb, tokens[3:])):
        was = tokens[1].key.endswith("+ed")
        key = tokens[1].key.removesuffix("+ed")
        copula = Token("was", "was", "function") if was else Token("is", "be", "function")
        yield (*tokens[2:end], copula, replace(tokens[1], key=f"{key}+ed"), *tokens[end:])


def split_clauses(tokens: Tokens) -> list[list[Tokens]]:
    """The clauses of a sentence, each with its subject, as a list of versions: without its last parts, and whole.

    `The gate opens at 8 on Mondays and on holidays and closes at 20` has two clauses, the first one in two versions.
    Empty if the sentence cannot be split safely.
    """
    parts = _parts(tokens)
    if _is_limited(tokens) or len(parts) < 2 or not has_verb(parts[0][1]):
        return []
    first = subject(parts[0][1]) if parts[0][1][0].key not in (*PREPOSITIONS, "there") else ()
    helper = [token for token in parts[0][1][len(first) :][:1] if token.key in _COPULAS]
    clauses: list[list[Tokens]] = []
    for joint, part in parts:
        is_aside = joint == "," and part[0].key.endswith(("+ed", "+ing"))  # `…, given enough time`
        is_predicate = is_verb(part[0]) or (part[0].kind == "negation" and len(part) > 1 and is_verb(part[1]))
        is_clause = has_verb(part) and part[0].key not in PREPOSITIONS and part[0].kind != "relation"
        if is_predicate and not first:
            return []
        if is_predicate and not is_aside:
            clauses.append([(*first, *(helper if part[0].key.endswith("+ed") else ()), *part)])
        elif not clauses or (is_clause and not is_aside):
            clauses.append([part])
        else:
            whole = (*clauses[-1][-1], Token("and", "and", "function"), *part)
            clauses[-1] = [*clauses[-1], whole] if _is_free(joint, part) else [whole]
    # `Adults pay 9 euros and children pay 4 euros on weekends`: both may pay it on weekends, unless a comma parts them.
    places = [sum(token.key in _PLACING for token in versions[-1]) for versions in clauses]
    return [] if places and places[-1] > min(places) and parts[-1][0] in ("and", "but") else clauses


_INCLUDING = lexicon.verb_key("including")
_PLACING = PREPOSITIONS - {"of", "to", "by", "as", "from", "into", "onto"} | {"before", "after", "without"}
"""Prepositions of a time, a place or a purpose, which may belong to several clauses."""


def _parts(tokens: Tokens) -> list[tuple[str, Tokens]]:
    """The tokens between commas and words such as `and`, each with the joint before it; `2 and 8` stays together."""
    parts: list[tuple[str, Tokens]] = []
    joint, part = "", list[Token]()
    for index, token in enumerate([*tokens, Token("", "", "mark")]):
        around = [each.value for each in (*tokens[index - 1 : index], *tokens[index + 1 : index + 2])]
        is_range = len(around) == 2 and all(around)
        if token.kind == "mark" or (token.key in lexicon.SPLITTERS and not (token.key == "and" and is_range)):
            parts += [(joint, tuple(part))] if part else []
            joint, part = token.key if part else joint + token.key, []
        else:
            part.append(token)
    return parts


def _is_free(joint: str, part: Tokens) -> bool:
    """Whether a part does not limit what comes before it: `open, but only for members` is not `open`."""
    if part[0].kind == "negation":  # `waterproof but not windproof`, but not `open, not on Sundays`
        return part[1:2] != () and part[1].key not in PREPOSITIONS
    if part[0].key == _INCLUDING:
        return True
    # `open on Mondays and on holidays`, but not `open and free on Sundays`
    is_placed = any(token.key in PREPOSITIONS for token in part)
    return joint.endswith("and") and (part[0].key in PREPOSITIONS or not is_placed)
