"""Compares a claim with a statement, token by token, in order.

Order carries the roles: who did what to whom, cause and effect, condition and consequence. Two statements that match in
all tokens say the same. They contradict each other if they match in all but one, which fills the same slot with
something incompatible (another amount, name or status), if one has a negation more, or if two parts have changed
places.
"""

from __future__ import annotations

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.grammar import is_verb
from proctor.judging.rule_judge.reading import Token, Tokens, excludes, matches


def difference(claim: Tokens, statement: Tokens) -> str | None:
    """Why the claim contradicts the statement; empty if it says the same, `None` if neither is certain."""
    if len(claim) != len(statement):
        return _negation(claim, statement)
    pairs = [(ours, theirs) for ours, theirs in zip(claim, statement, strict=True) if not matches(ours, theirs)]
    if not pairs:
        return ""
    if len(pairs) == 1:
        ours, theirs = pairs[0]
        return f"it says “{ours.text}” instead of “{theirs.text}”" if excludes(ours, theirs) else None
    return "the roles are exchanged" if _are_exchanged(claim, statement) else None


def _negation(claim: Tokens, statement: Tokens) -> str | None:
    """The reason if the claim has one negation more or less, or leaves out a `may`."""
    shorter, longer = sorted((claim, statement), key=len)
    if any(token.kind == "quantifier" and 0 < lexicon.QUANTIFIERS[token.key] < 6 for token in statement):
        return None  # some have it, some do not
    for place, extra in enumerate(longer if len(longer) == len(shorter) + 1 else ()):
        is_hedge = longer is statement and extra.key in ("may", "might", "could") and extra.kind == "modal"
        if (is_hedge or extra.kind == "negation") and all(map(matches, shorter, longer[:place] + longer[place + 1 :])):
            return f"it {'adds' if longer is claim else 'leaves out'} “{extra.text}”"
    return None


def _are_exchanged(claim: Tokens, statement: Tokens) -> bool:
    """Whether two parts have changed places around what gives them roles: `A beat B`, `B because A`."""
    same = [matches(*pair) for pair in zip(claim, statement, strict=True)]
    start, end = same.index(False), len(same) - same[::-1].index(False)
    ours, theirs = claim[start:end], statement[start:end]
    for first in range(1, len(theirs)):
        for second in range(first + 1, len(theirs)):
            one, pivot, other = theirs[:first], theirs[first:second], theirs[second:]
            if all(map(matches, ours, (*other, *pivot, *one))) and _has_roles(statement[:start], one, pivot, other):
                return True
    return False


def _has_roles(before: Tokens, one: Tokens, pivot: Tokens, other: Tokens) -> bool:
    """Whether what stands between two parts, as a verb does, gives them different roles."""
    if len(one) == len(other) == 1 and one[0].value and other[0].value:
        # `12 girls and 14 boys`, not `between 5 and 7` or `line 5 and line 7`
        is_apart = any(token.kind in ("word", "name") for token in pivot)
        return is_apart and excludes(one[0], other[0]) and not any(map(matches, before[-1:], pivot[-1:]))
    if any(token.key in _MUTUAL for token in (*one, *pivot, *other)):
        return False
    return any(token.kind == "relation" or _is_directed(token) for token in pivot)


def _is_directed(token: Token) -> bool:
    """Whether the token is a verb whose subject and object have different roles."""
    is_symmetric = token.key.partition("+")[0] in lexicon.SYMMETRIC or token.text.lower() in lexicon.SYMMETRIC
    return is_verb(token) and token.kind != "modal" and not is_symmetric


_MUTUAL = ("with", "against", "between", "like", "and", "near", "opposite", "beside", "along", "next")
"""Words that may join two equals: `Anna dances with Ben`."""
