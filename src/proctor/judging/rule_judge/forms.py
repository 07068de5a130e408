"""One sentence in the few ways to write it: its parts in another order, its passive as an active, a command as advice.

Each way is a list of tokens with the same meaning. Claims and sentences of the passages are both written in all of
them, so that two that mean the same have one in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.grammar import (
    COPULAS,
    has_verb,
    is_bare,
    is_verb,
    split_adjuncts,
    subject,
    without_marks,
)
from proctor.judging.rule_judge.lexicon import PREPOSITIONS
from proctor.judging.rule_judge.reading import Token, Tokens


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
    return (*core, *(token for part in sorted(adjuncts, key=rank) for token in part))


def rank(part: Tokens) -> str:
    """The place of a part: empty unless it is a time or a condition; `before` and `after` share one."""
    if part[0].kind == "condition":
        return "if"
    is_time = any(token.kind in ("date", "clock", "number") or token.key in lexicon.TIMES for token in part[1:2])
    key = part[0].key
    return {"before": "after", "on": "at", "in": "at", "during": "at"}.get(key, key) if is_time else ""


def _moved(tokens: Tokens) -> Tokens:
    """`In winter, the trail is closed` as `the trail is closed in winter`; also `if` and `because` clauses."""
    comma = leading_part(tokens)
    return (*tokens[comma + 1 :], *tokens[:comma]) if comma else ()


def leading_part(tokens: Tokens) -> int:
    """The place of the comma after a leading part such as `In winter, …` or `If it rains, …`; 0 if there is none."""
    if not tokens or not (tokens[0].key in PREPOSITIONS or tokens[0].kind in ("condition", "relation", "date")):
        return 0
    comma = next((index for index, token in enumerate(tokens) if token.key == ","), 0)
    rest = tokens[comma + 1 :]
    return comma if has_verb(rest) or (rest and is_bare(rest[0])) else 0


def _fronted(tokens: Tokens) -> Iterator[Tokens]:
    """`On Sundays the shop is closed` as `the shop is closed on Sundays`, for a part of two words without a comma."""
    is_part = bool(tokens) and tokens[0].key in PREPOSITIONS and all(token.kind != "mark" for token in tokens[:3])
    if is_part and subject(tokens[2:]) and not is_verb(tokens[1]):
        yield (*tokens[2:], *tokens[:2])


def _active(tokens: Tokens) -> Tokens:
    """`B was bought by A in 2019` as `A bought B in 2019`."""
    keys = [token.key for token in tokens]
    denial = next(
        (tokens[i : i + 1] for i in range(2, len(keys)) if tokens[i].kind == "negation" and keys[i - 1] in COPULAS), ()
    )
    if denial:  # `is not covered by` as `does not cover`
        tokens = tuple(token for token in tokens if token is not denial[0])
        keys = [token.key for token in tokens]
    place = next((i for i in range(1, len(keys) - 2) if keys[i] in COPULAS and keys[i + 1].endswith("+ed")), 0)
    by = keys.index("by", place + 2) if place and "by" in keys[place + 2 :] else 0
    end = by + 1
    while by and end < len(tokens) and (tokens[end].kind in ("word", "name", "quantifier") or keys[end] == "of"):
        end += 1
    if end == by + 1:
        return ()
    verb = tokens[place + 1]
    form = verb if keys[place] == "was" else replace(verb, key=verb.key.removesuffix("+ed"))
    return (*tokens[by + 1 : end], *denial, form, *tokens[:place], *tokens[place + 2 : by], *tokens[end:])


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
    be = place + 1 + (tokens[place + 1].kind == "negation")
    if modal.key not in ("can", "must") or not _is_kept_by_customers(tokens, be):
        return ()
    if has_verb(tokens[:place]) or tokens[0].kind == "quantifier":
        return ()
    start = place - (tokens[place - 1].kind == "negation")
    verb = replace(tokens[be + 1], key=tokens[be + 1].key.removesuffix("+ed"))
    return (_YOU, *tokens[start:place], modal, *tokens[place + 1 : be], verb, *tokens[:start], *tokens[be + 2 :])


def _is_kept_by_customers(tokens: Tokens, be: int) -> bool:
    """Whether `be` and the next token are a passive of what customers do, by nobody else: `may be kept`."""
    keys = [token.key for token in tokens]
    is_passive = be + 1 < len(keys) and keys[be] == "be" and keys[be + 1].endswith("+ed") and "by" not in keys
    return is_passive and keys[be + 1].removesuffix("+ed") in lexicon.CUSTOMER_VERBS


def _without_object(tokens: Tokens) -> Tokens:
    """`You should keep it cool` as `you should keep cool`."""
    place = next((i for i, token in enumerate(tokens) if token.key in _KEEPING), len(tokens)) + 1
    is_object = tokens[place : place + 1] != () and tokens[place].key in ("it", "them")
    return tokens[:place] + tokens[place + 1 :] if is_object else tokens


_KEEPING = frozenset(map(lexicon.stem, "keep store serve use".split()))


_YOU = Token("you", "you", "function")
