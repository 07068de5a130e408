"""What else a sentence states: its clauses, its parts in another order, its passive as an active, what somebody is.

Each function takes tokens and returns other tokens with the same meaning, or a part of it that is stated on its own.
Leaving out whatever stands between commas would be wrong: most of it may be a condition, a place or a time for which
alone the rest is true. Only these are left out: other clauses, `and` with what follows, the time of a past event, and
what explains a noun in `X is a …`. Where a word limits the sentence (if, or, according to), nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

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


def has_finite_verb(tokens: Sequence[Token]) -> bool:
    """Whether there is a verb that cannot be a noun: with an ending, a modal verb, a form of `be` or `have`."""
    return any(is_verb(token) and not (token.kind == "word" and lexicon.is_bare(token.text.lower())) for token in tokens)


def subject(tokens: Sequence[Token]) -> Tokens:
    """The tokens before the verb; empty if there is no verb."""
    place = next((index for index, token in enumerate(tokens) if index and is_verb(token)), 0)
    return tuple(each for each in tokens[:place] if each.kind not in ("mark", "negation"))


def without_marks(tokens: Sequence[Token]) -> Tokens:
    """The tokens without marks, and without words that change nothing."""
    return tuple(token for token in tokens if token.kind != "mark" and token.key not in lexicon.HARMLESS)


def _is_limited(tokens: Sequence[Token]) -> bool:
    """Whether parts of the sentence are not stated on their own: conditions, alternatives, reported speech."""
    return any(token.key.partition("+")[0] in _LIMITING or token.text.lower() in _LIMITING for token in tokens)


_LIMITING = lexicon.ATTRIBUTIONS | frozenset(map(lexicon.stem, lexicon.ATTRIBUTIONS)) | lexicon.CONDITIONS | {"notonly", ":"}


def forms(tokens: Tokens) -> list[Tokens]:
    """The sentence in its ways to be written: as it is, with a leading part moved to the end, as an active.

    In each, the parts after the verb stand in one order: `at 8 on Mondays` is `on Mondays at 8`.
    """
    found = [without_marks(each) for each in (tokens, _moved(tokens), *_fronted(tokens)) if each]
    found += [each for way in (_active, _addressed) for form in found if (each := way(form))]
    return list(dict.fromkeys(map(_ordered, found)))


def _ordered(tokens: Tokens) -> Tokens:
    """The sentence with its times and conditions at the end, sorted by prepositions.

    Other parts keep their order: `the book on the table in the box` is not `… in the box on the table`.
    """
    core, adjuncts = split_adjuncts(tokens)
    return (*core, *(token for part in sorted(adjuncts, key=_rank) for token in part))


def _rank(part: Tokens) -> str:
    """The place of a part: empty unless it is a time or a condition, with one for opposites such as `before` and `after`."""
    if part[0].kind == "condition":
        return "if"
    is_time = any(token.kind in ("date", "clock", "number") or token.key in lexicon.TIMES for token in part[1:2])
    key = part[0].key
    return {"before": "after", "on": "at", "in": "at", "during": "at"}.get(key, key) if is_time else ""


def split_adjuncts(tokens: Tokens) -> tuple[Tokens, list[Tokens]]:
    """The sentence up to its object, and each part after it that starts with a preposition, a relation or a condition."""
    verb = next((index for index, token in enumerate(tokens) if is_verb(token) and (index or is_bare(token))), None)
    if verb is None:
        return tokens, []
    starts = [i for i in range(verb + 1, len(tokens)) if _starts_adjunct(tokens, i)]
    # A clause such as `if it rains on Monday` is one part with the rest of the sentence.
    clause = next((i for i in starts if tokens[i].kind in ("condition", "relation") and has_verb(tokens[i:])), None)
    starts = [i for i in starts if clause is None or i <= clause]
    first, *parts = _cut(tokens, starts)
    return first, parts


def _cut(tokens: Tokens, starts: Sequence[int]) -> list[Tokens]:
    """What comes before the first start, and each part from one start to the next; `from 8 to 10` is one part."""
    starts = [i for number, i in enumerate(starts) if not (tokens[i].key == "to" and number and tokens[starts[number - 1]].key == "from")]
    return [tokens[: starts[0]] if starts else tokens, *(tokens[a:b] for a, b in pairwise([*starts, len(tokens)]))]


def _starts_adjunct(tokens: Tokens, place: int) -> bool:
    token = tokens[place]
    is_preposition = token.key in PREPOSITIONS and token.key not in ("of", "as")
    return (is_preposition or token.key == "at" or token.kind in ("condition", "relation")) and token.key != "than"


def is_bare(token: Token) -> bool:
    """Whether the word is a verb without an ending, as a command starts with: `Hold the button`."""
    is_verb_form = token.key in lexicon.VERBS and lexicon.is_bare(token.text.lower())
    return token.kind == "word" and is_verb_form and not token.article


def _addressed(tokens: Tokens) -> Tokens:
    """`DVDs may be kept for 7 days` as `you can keep DVDs for 7 days`, and `keep it cool` as `you should keep cool`."""
    first = tokens[1:] if tokens[:1] and tokens[0].kind == "negation" else tokens
    if first and is_bare(first[0]) and not any(map(is_verb, first[1:2])):
        return _without_object((_YOU, Token("", "should", "modal"), *tokens))
    place = next((i for i in range(1, len(tokens) - 1) if tokens[i].kind == "modal"), 0)
    if not place:
        return ()
    is_permission = tokens[place].key == "may" and tokens[place + 1].kind != "negation"
    modal = replace(tokens[place], key="can") if is_permission else tokens[place]
    if place == 1 and tokens[0].key == "you":
        return _without_object((_YOU, modal, *tokens[2:]))
    be = place + 1 + (tokens[place + 1].kind == "negation") if place else 0
    keys = [token.key for token in tokens]
    is_passive = place and be + 1 < len(tokens) and keys[be] == "be" and keys[be + 1].endswith("+ed") and "by" not in keys
    is_yours = is_passive and lexicon.stem(tokens[be + 1].text.lower()) in lexicon.CUSTOMER_VERBS
    if not is_yours or modal.key not in ("can", "must") or has_verb(tokens[:place]) or tokens[0].kind == "quantifier":
        return ()
    start = place - (tokens[place - 1].kind == "negation")
    verb = replace(tokens[be + 1], key=keys[be + 1].removesuffix("+ed"))
    return (_YOU, *tokens[start:place], modal, *tokens[place + 1 : be], verb, *tokens[:start], *tokens[be + 2 :])


def _without_object(tokens: Tokens) -> Tokens:
    """`You should keep it cool` as `you should keep cool`."""
    place = next((i for i, token in enumerate(tokens) if token.key in _KEEPING), len(tokens)) + 1
    is_object = tokens[place : place + 1] != () and tokens[place].key in ("it", "them")
    return tokens[:place] + tokens[place + 1 :] if is_object else tokens


_KEEPING = frozenset(map(lexicon.stem, "keep store serve use".split()))

_YOU = Token("you", "you", "function")


def stated(tokens: Tokens) -> list[Tokens]:
    """Everything that a sentence states: its forms, and those of its parts, also without the time of a past event."""
    comma = _leading_part(tokens)
    clauses = split_clauses(tokens)
    if comma and not has_verb(tokens[:comma]):  # `In May, A opened and B closed`: B may have closed at another time
        first_clause = split_clauses(tokens[comma + 1 :])[:1]
        clauses = [[(*tokens[: comma + 1], *version) for version in versions] for versions in first_clause]
    elif is_framed(tokens) and not comma:  # `On Sundays the shop is closed but the café is open`
        clauses = clauses[:1]
    others = [part for way in (_completed, _universal) for part in way(tokens)]
    texts = (tokens, *others, *(version for versions in clauses for version in versions))
    found = [form for text in texts for form in forms(text)]
    return list(dict.fromkeys(each for form in found for each in (form, *_without_time(form))))


def _without_time(tokens: Tokens) -> Iterator[Tokens]:
    """`The road was closed on Monday` states that it was closed; `the road is closed on Mondays` does not say it is."""
    if is_past_event(tokens):
        for index, (one, other) in enumerate(pairwise(tokens)):
            if one.key == "at" and other.kind in ("date", "clock"):
                yield tokens[:index] + tokens[index + 2 :]


def is_past_event(tokens: Tokens) -> bool:
    """Whether the sentence says that something happened once, without an amount: `the road was closed on Monday`."""
    verbs = [token for token in tokens if is_verb(token)]
    is_past = bool(verbs) and (verbs[0].key == "was" or (len(verbs) == 1 and verbs[0].key.endswith("+ed")))
    return is_past and not any(token.kind in (*_RESTRICTING, "number") or token.key == "be" for token in tokens)


def without_heading(tokens: Tokens) -> Tokens:
    """`Rules of the library: books may be kept for 28 days` as `books may be kept for 28 days`; not `Members: …`."""
    place = next((i for i, token in enumerate(tokens) if token.key == ":"), 0)
    heading, rest = tokens[:place], tokens[place + 1 :]
    is_plain = not _is_limited(heading) and not any(lexicon.is_contrast(token.text.lower()) for token in heading)
    is_heading = is_plain and any(token.text.lower() in lexicon.HEADINGS for token in heading)
    return rest if is_heading and rest and (has_verb(rest) or is_bare(rest[0])) else tokens


def is_fragment(tokens: Tokens) -> bool:
    """Whether the tokens only name something, as the items of a list do."""
    return bool(tokens) and not has_finite_verb(tokens) and not is_bare(tokens[0]) and not _is_limited(tokens)


def list_items(tokens: Tokens) -> list[Tokens]:
    """The items of `The box includes: a drone, two batteries and a charger`."""
    place = next((i for i, token in enumerate(tokens) if token.key == ":"), 0)
    heading, rest = tokens[:place], tokens[place + 1 :]
    if not heading or any(token.kind in _RESTRICTING for token in heading) or not is_fragment(rest):
        return []
    items = parts(rest)
    return items if len(items) > 1 else []


def parts(tokens: Tokens) -> list[Tokens]:
    """The parts between commas and words such as `and`."""
    return [part for _, part in _parts(tokens)]


def events(tokens: Tokens) -> tuple[Tokens, Tokens] | None:
    """What comes first and what comes after it: `drain it, then fill it`, `drain it before you fill it`."""
    for place, token in enumerate(tokens):
        rest = tokens[place + 1 :]
        is_clause = bool(rest) and rest[0].value is None and (has_verb(rest) or is_bare(rest[0]) or rest[0].key.endswith("+ing"))
        if token.key in ("before", "after", "then") and is_clause:
            comma = next((i for i, each in enumerate(rest) if each.key == ","), len(rest))
            one, other = (tokens[:place], rest) if place else (rest[comma + 1 :], rest[:comma])
            pair = (other, one) if token.key == "after" else (one, other)
            first, second = (_event(each) for each in pair)
            return (first, second) if first and second else None
    return None


def _event(tokens: Tokens) -> Tokens:
    words = [token for token in tokens if token.kind != "mark" and token.key not in _SEQUENCE]
    return tuple(replace(token, key=token.key.partition("+")[0]) for token in words)


_SEQUENCE = frozenset("first then and you it them finally afterwards".split())


def shortest(statements: Sequence[Tokens]) -> list[Tokens]:
    """The clauses of a sentence, without statements that consist of them."""
    keys = [frozenset(token.key for token in statement) - {"and", "but"} for statement in statements]
    parts = [frozenset().union(*(other for other in keys if other < own)) for own in keys]
    return [each for each, own, inner in zip(statements, keys, parts, strict=True) if inner != own]


def _completed(tokens: Tokens) -> Iterator[Tokens]:
    """What a sentence states of several things or cases without repeating its verb.

    `Books are lent for 28 days, DVDs for 7 days`; `Adults pay 9 euros, children 4 euros`; `It is open until 8 on Mondays
    and until 6 on Fridays`; `It is waterproof but not windproof`; `The lid is steel, the base is not`.
    """
    joined = _parts(tokens)
    if _is_limited(tokens) or len(joined) < 2 or is_framed(tokens) or _ends_in_frame(joined):
        return
    clause: Tokens = ()
    names: list[Tokens] = []
    for joint, part in joined:
        if has_verb(part) and not (len(part) > 1 and part[-1].key in (*_COPULAS, "not")):
            clause, names = part, []
        elif clause:
            found = _complete(clause, joint, part)
            if not found and _is_name(part):
                names.append(part)  # `DVDs` of `DVDs and games for 7 days`
                continue
            yield from found
            if found and joint.endswith("and") and found[0][: len(part)][0] == part[0]:
                yield from (each for name in names for each in _complete(clause, joint, (*name, *_predicate(part))))
            yield from ((clause,) if found else ())
            clause, names = (clause if found else ()), []


def is_framed(tokens: Tokens) -> bool:
    """Whether the sentence starts with a time, a place or a condition, which may hold for what follows it as well."""
    return bool(tokens) and (_starts_adjunct(tokens, 0) or tokens[0].kind in ("date", "condition"))


def _ends_in_frame(joined: Sequence[tuple[str, Tokens]]) -> bool:
    """Whether the last part may hold for all before it: `Adults pay 9 euros, children 4 euros, on weekends`."""
    joint, part = joined[-1]
    return joint == "," and _starts_adjunct(part, 0) and len(joined) > 2


def _complete(clause: Tokens, joint: str, part: Tokens) -> list[Tokens]:
    """The part of a sentence with the words of the clause before it that it needs; empty if that is not clear."""
    first = subject(clause)
    core, adjuncts = split_adjuncts(clause)
    is_denied = any(token.kind == "negation" or token.text.lower() in lexicon.COMPLEMENTS for token in core)
    is_ellipsis = part[-1].key in _COPULAS or (part[-1].kind == "negation" and part[-2:-1] and part[-2].key in _COPULAS)
    if not first or core[: len(first)] != first or (is_denied and not is_ellipsis):
        return []  # `it does not open at 8 but at 9`
    verbs, others = core[len(first) :], split_parts(part)
    head, rest = others[0], others[1:]
    heads, others_heads = ([_rank(each) for each in group] for group in (adjuncts, rest))
    if is_ellipsis:
        plain = tuple(token for token in verbs if token.kind != "negation")
        # `closed` is read as `not open`, so that it is not clear what `the other is` and `the other is not` mean.
        is_clear = plain[:1] != () and not any(token.text.lower() in lexicon.COMPLEMENTS for token in verbs)
        return [(*part, *plain[1:])] if is_clear and plain[0].key in _COPULAS and not adjuncts else []
    if joint.endswith("but") and part[0].kind == "negation" and part[1].key not in _PLACING and verbs[0].key in _COPULAS and not adjuncts:
        return [(*first, verbs[0], *part)]
    if not head and len(rest) == len(adjuncts) and (heads == others_heads or len(rest) > 1):
        return [(*core, *part)]
    value = next((i for i, token in enumerate(verbs) if token.value), None)
    place = next((i for i, token in enumerate(head) if token.value), None)
    if value is not None and place is not None and len(verbs) - value == len(head) - place and heads == others_heads:
        if verbs[value].value.unit == head[place].value.unit and _is_name(head[:place] or head):
            return [(*(head[:place] or first), *verbs[:value], *head[place:], *(each for p in rest for each in p))]
        return [(*first, *verbs[:value], *part)] if place == 0 and verbs[value].value.unit == head[0].value.unit else []
    if rest and heads == others_heads and all(is_verb(token) or token.kind == "negation" for token in verbs):
        return [(*head, *verbs, *(each for p in rest for each in p))] if _is_name(head) else []
    return []


def _predicate(part: Tokens) -> Tokens:
    """The part after its name."""
    place = next((i for i, token in enumerate(part) if token.value or _starts_adjunct(part, i)), len(part))
    return part[place:]


def split_parts(part: Tokens) -> list[Tokens]:
    """A part without a verb: what comes before its first preposition, and each part that starts with one."""
    return _cut(part, [i for i in range(len(part)) if _starts_adjunct(part, i)])


def _is_name(tokens: Tokens) -> bool:
    """Whether the tokens are only words and names: what something is called."""
    return bool(tokens) and all(token.kind in ("word", "name") and not token.key.endswith("+ed") for token in tokens)


def _universal(tokens: Tokens) -> Iterator[Tokens]:
    """`Each room has a balcony` as `rooms have a balcony`."""
    is_plain = len(tokens) > 1 and tokens[1].kind in ("word", "name") and not lexicon.is_contrast(tokens[1].text.lower())
    if is_plain and tokens[0].key in ("each", "every", "all", "any") and not _is_limited(tokens):
        yield tokens[1:]


def _moved(tokens: Tokens) -> Tokens:
    """`In winter, the trail is closed` as `the trail is closed in winter`; also `if` and `because` clauses."""
    comma = _leading_part(tokens)
    return (*tokens[comma + 1 :], *tokens[:comma]) if comma else ()


def _fronted(tokens: Tokens) -> Iterator[Tokens]:
    """`On Sundays the shop is closed` as `the shop is closed on Sundays`, for a part of two words without a comma."""
    if tokens and tokens[0].key in PREPOSITIONS and all(token.kind != "mark" for token in tokens[:3]):
        if subject(tokens[2:]) and not is_verb(tokens[1]):
            yield (*tokens[2:], *tokens[:2])


def _leading_part(tokens: Tokens) -> int:
    """The place of the comma after a leading part such as `In winter, …` or `If it rains, …`; 0 if there is none."""
    if not tokens or not (tokens[0].key in PREPOSITIONS or tokens[0].kind in ("condition", "relation", "date")):
        return 0
    comma = next((index for index, token in enumerate(tokens) if token.key == ","), 0)
    rest = tokens[comma + 1 :]
    return comma if has_verb(rest) or (rest and is_bare(rest[0])) else 0


def _active(tokens: Tokens) -> Tokens:
    """`B was bought by A in 2019` as `A bought B in 2019`."""
    keys = [token.key for token in tokens]
    denial = next((tokens[i : i + 1] for i in range(2, len(keys)) if tokens[i].kind == "negation" and keys[i - 1] in _COPULAS), ())
    if denial:  # `is not covered by` as `does not cover`
        tokens = tuple(token for token in tokens if token is not denial[0])
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
    return (*tokens[by + 1 : end], *denial, form, *tokens[:place], *tokens[place + 2 : by], *tokens[end:])


def split_clauses(tokens: Tokens) -> list[list[Tokens]]:
    """The clauses of a sentence, each with its subject, as a list of versions: without its last parts, and whole.

    `The gate opens at 8 on Mondays and on holidays and closes at 20` has two clauses, the first one in two versions.
    Empty if the sentence cannot be split safely.
    """
    joined = _parts(tokens)
    head = joined[0][1] if joined else ()
    is_command = head != () and is_bare(head[0])
    if _is_limited(tokens) or len(joined) < 2 or not (is_command or has_verb(head)) or _governs_more(head):
        return []
    first = subject(head) if head[0].key not in (*PREPOSITIONS, "there") else ()
    auxiliaries = takewhile(lambda token: token.kind in ("modal", "negation") or token.key in _COPULAS, head[len(first) :])
    helper = list(auxiliaries)
    is_denied = any(token.kind == "negation" for token in helper)
    clauses: list[list[Tokens]] = []
    for joint, part in joined:
        is_aside = joint == "," and part[0].key.endswith(("+ed", "+ing"))  # `…, given enough time`
        is_predicate = is_verb(part[0]) or (part[0].kind == "negation" and len(part) > 1 and is_verb(part[1]))
        is_clause = has_verb(part) and part[0].key not in PREPOSITIONS and part[0].kind != "relation"
        if is_command and (is_bare(part[0]) or not is_predicate):
            clauses += [[part]] if is_bare(part[0]) else []
            continue
        if is_predicate and not first:
            return []
        if is_predicate and not is_aside:
            is_participle = part[0].key.endswith("+ed")
            if (is_denied and (is_participle or lexicon.is_bare(part[0].text.lower()))) or (is_participle and has_verb(part)):
                return []  # `must not drink and drive`, `orders placed online and paid by card ship free`
            needs_helper = is_participle or (lexicon.is_bare(part[0].text.lower()) and any(token.kind == "modal" for token in helper))
            clauses.append([(*first, *(helper if needs_helper else ()), *part)])
        elif not clauses or (is_clause and not is_aside):
            clauses.append(_complete(clauses[-1][-1], joint, part)[:1] or [part] if clauses else [part])
            first, helper = (first, helper) if part is head else (subject(part), [])
        else:
            before = clauses[-1][-1]
            whole = (*before, Token("and", "and", "function"), *part)
            # `10 euros and a fee`, `red and white` are one thing.
            is_sum = before[-1].kind in ("number", "period") or lexicon.excludes(before[-1].key, part[-1].key)
            clauses[-1] = [*clauses[-1], whole] if _is_free(joint, part) and not is_sum else [whole]
    # `Adults pay 9 euros and children pay 4 euros on weekends`: both may pay it on weekends, unless a comma parts them.
    places = [sum(token.key in _PLACING for token in versions[-1]) for versions in clauses]
    return [] if places and places[-1] > min(places) and joined[-1][0] in ("and", "but") else clauses


def _governs_more(head: Tokens) -> bool:
    """Whether a word in the first clause may govern the next one, too: `ordered to pay`, `guests who book`, `could close`."""
    verbs = [i for i, token in enumerate(head) if i and is_verb(token)]
    is_infinitive = any(one.key == "to" and other.kind == "word" and not other.article for one, other in pairwise(head))
    is_relative = any(token.key in ("who", "which", "that", "whose") for token in head)
    is_reduced = len(verbs) > 1 and head[verbs[0]].key.endswith("+ed") and not is_verb(head[verbs[0] - 1])
    return head[0].kind == "negation" or is_infinitive or is_relative or is_reduced


_INCLUDING = lexicon.verb_key("including")
_PLACING = PREPOSITIONS - {"of", "to", "by", "as", "from", "into", "onto"} | {"before", "after", "without"}
"""Prepositions of a time, a place or a purpose, which may belong to several clauses."""


def _parts(tokens: Tokens) -> list[tuple[str, Tokens]]:
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


def _is_free(joint: str, part: Tokens) -> bool:
    """Whether a part does not limit what comes before it: `open, but only for members` is not `open`."""
    if part[0].kind == "negation":  # `waterproof but not windproof`, but not `open, not on Sundays`
        return part[1:2] != () and part[1].key not in PREPOSITIONS
    if part[0].key == _INCLUDING:
        return True
    # `open on Mondays and on holidays`, but not `open and free on Sundays`
    is_placed = any(token.key in PREPOSITIONS for token in part)
    return joint.endswith("and") and (part[0].key in PREPOSITIONS or not is_placed)
