"""Whether passages support a statement, contradict it, do not mention it, or whether the rules cannot decide.

How it works: the statement is read into terms (words, names, numbers, dates), and each term is looked up in the few
most related sentences. A contradiction (opposite word, negation, another value for the same label) decides first. If
names or much of the content is missing, it is unmentioned. If all terms are there in nearly the same words, it is
supported. Everything else is unclear. Plain word overlap would be wrong both ways: "not refundable" shares all words
with "refundable", and a paraphrase shares few. So the rules prove, refute or abstain.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from rapidfuzz.distance import Levenshtein

from proctor.judging.rule_judge.contradictions import contradictions
from proctor.judging.rule_judge.dates import PartialDate, matches_known_date
from proctor.judging.rule_judge.evidence import Evidence, passage_index
from proctor.judging.rule_judge.labelled_values import ValueMatch, compare_values
from proctor.judging.rule_judge.passage_reading import Reading, Term, read_statement
from proctor.judging.rule_judge.quantities import Quantity, same_quantity
from proctor.judging.rule_judge.statements import without_courtesy
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT, QUANTIFIERS, denied_words, opposites, root, word_key

SupportVerdict = Literal["supported", "contradicted", "unmentioned", "unclear"]

UNMENTIONED_BELOW = ((0.65, 1.0), (0.75, 2.0))
"""Below these shares, and with at least so much weight missing, the evidence does not say a statement."""
MAX_OWN_WORDS = (1, 20)
"""So many words, or one in so many, may be the statement's own: more of them may change what it says."""


@dataclass(frozen=True, slots=True)
class Support:
    """What passages say of a statement, and why."""

    verdict: SupportVerdict
    reason: str
    share: float
    """How much of it they mention."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which share of a statement the evidence mentions, and what it does not."""

    share: float
    missing: tuple[Term, ...]
    own: int
    """How many of its words, grammar included, the evidence does not have; numbers are not counted."""


def support(statement: str, passages: str | Sequence[str], known: Sequence[str] = ()) -> Support:
    """What the passages say of the statement; `known` may be repeated, and contradicts nothing."""
    said = read_statement(without_courtesy(statement))
    alone = passage_index(passages).evidence(said)
    judged = judge_statement(said, alone)
    if not known or judged.verdict == "supported":
        return judged
    with_known = judge_statement(said, alone, passage_index(known).evidence(said).readings)
    if with_known.verdict == "supported" and not alone.is_data and _is_reworded(said, coverage(said, alone)):
        return Support("unclear", "only the question says all of it", judged.share)
    return with_known


def _is_reworded(said: Reading, covered: Coverage) -> bool:
    return covered.own > max(MAX_OWN_WORDS[0], len(said.terms) // MAX_OWN_WORDS[1])


def judge_statement(said: Reading, grounds: Evidence, known: Sequence[Reading] = ()) -> Support:
    """What `grounds` say of a statement; `known` may be repeated, and contradicts nothing."""
    told = [*grounds.readings, *known]
    evidence = Evidence(told, is_data=grounds.is_data, has_speaker=grounds.has_speaker) if known else grounds
    covered = coverage(said, evidence)
    if not any(term.weight > GRAMMAR_WEIGHT for term in said.terms):
        return Support("unclear", "it has no content that can be looked up", covered.share)
    found = list(compare_values(said, grounds.readings, known))
    against = next(contradictions(said, grounds), "") or next((f.reason for f in found if f.verdict == "other"), "")
    if against:
        return Support("contradicted", against, covered.share)
    absent = _missing_message(covered.missing)
    named = [term for term in covered.missing if _is_name_or_number(term)]
    if named and len(named) == len(covered.missing) and not evidence.is_data:
        return Support("unmentioned", absent, covered.share)
    figures = [term for term in said.terms if term.fact is not None and _is_name_or_number(term)]
    placed = bool(figures) and not any(
        _is_name_or_number(term) and term is not said.terms[0] for term in covered.missing
    )
    weight = sum(term.weight for term in covered.missing)
    is_new = any(covered.share < share and weight >= least for share, least in UNMENTIONED_BELOW)
    if is_new and not placed and not (evidence.is_data and _is_confirmed_by_data(said, covered)):
        return Support("unmentioned", absent, covered.share)
    doubt = _doubt(said, evidence, found)
    if doubt:
        return Support("unclear", doubt, covered.share)
    said_so = not covered.missing and not _is_reworded(said, covered)
    if said_so or (evidence.is_data and _is_confirmed_by_data(said, covered)):
        return Support("supported", "the context says so", covered.share)
    return Support("unclear", absent, covered.share)


def _is_name_or_number(term: Term) -> bool:
    """A name with a capital or a number in digits: where all else is there, it is what was made up."""
    if term.name:
        return term.text[0].isupper() and not (term.text.isupper() and len(term.text) <= 5)  # no abbreviation
    return term.fact is not None and any(map(str.isdigit, term.text))


def _doubt(said: Reading, evidence: Evidence, found: Sequence[ValueMatch]) -> str:
    """Why a statement is not supported although its words are there; empty if nothing speaks against it."""
    if said.first_person and not evidence.has_speaker:
        return "a first-person statement; cannot be checked against the context"
    if not evidence.is_data and _YES_OR_NO.match(said.text):
        return "the context does not say what yes or no refers to"
    words = {term.text.lower() for term in said.terms} & QUANTIFIERS
    shifted = "" if evidence.is_data else min(words - {term.text.lower() for term in evidence.terms}, default="")
    if shifted:
        return f"the context does not say “{shifted}”"
    if any(not any(True in evidence.polarity.get(word, ()) for word in denied) for denied in said.denials):
        return "the context does not deny it in the same words"
    mixed = next((item.term.text for item in found if item.verdict == "doubtful" and not item.term.name), "")
    return f"“{mixed}” may belong to something else" if mixed else ""


_YES_OR_NO = re.compile(
    r"\W{0,5}(?:(?:ah|oh|well|ok|okay)\W{1,3}){0,2}(?:yes|no|yeah|yea|yep|yup|nope)"
    r"(?:\s{0,2}[,.!;:-]|\s+(?:but|it|they|he|she|i|we|you)\b|$)",
    re.IGNORECASE,
)


def _is_confirmed_by_data(said: Reading, covered: Coverage) -> bool:
    """Data has no words around its values: all names and numbers are there, and a number or half of the words."""
    if any(term.name or term.fact is not None for term in covered.missing):
        return False
    telling = [term for term in said.terms if term.weight > GRAMMAR_WEIGHT]
    return any(term.fact is not None for term in telling) or 2 * len(covered.missing) <= len(telling)


def coverage(said: Reading, evidence: Evidence) -> Coverage:
    """Half of the share counts what words tell, half counts words alike: copied grammar is a trace of copied claims."""
    told = total = words = found = 0.0
    own = 0
    missing: list[Term] = []
    for index, term in enumerate(said.terms):
        words += 1
        total += term.weight
        if term.weight <= GRAMMAR_WEIGHT:
            found += term.key in evidence.polarity
            own += term.key not in evidence.polarity
            continue
        known = credit_at(said.terms, index, evidence)
        told += term.weight * known
        found += known
        if not known:
            missing.append(term)
            own += term.fact is None
    alike = found / words if words else 1.0
    share = (told / total + alike) / 2 if total else 1.0
    return Coverage(share, tuple(missing), own)


def credit_at(terms: Sequence[Term], index: int, evidence: Evidence) -> float:
    """How far the evidence mentions one of the terms: by itself, with a neighbour as one word, or as a first name.

    A first name counts where the evidence gives the family name alone.
    """
    found = _credit(terms[index], evidence)
    if found:
        return found
    for one, other in pairwise(terms[max(0, index - 1) : index + 2]):
        if word_key((one.text + other.text).lower()) in evidence.polarity:
            return 1.0
    after = terms[index + 1] if index + 1 < len(terms) else None
    family = terms[index].name and after is not None and after.name and after.key in evidence.polarity
    return 0.8 if family and after is not None and after.key not in evidence.after_names else 0.0


def _credit(term: Term, evidence: Evidence) -> float:
    """How far the evidence mentions a term: 1 as it is, a little less in another form, 0 not at all."""
    if isinstance(term.fact, Quantity):
        parts = {part for day in evidence.days for part in (day.year, day.day)}
        dated = term.fact.unit in ("", "ordinal") and term.fact.value in parts
        return float(dated or any(same_quantity(term.fact, known) for known in evidence.quantities))
    if isinstance(term.fact, PartialDate):
        return float(matches_known_date(term.fact, evidence.days, evidence.years))
    if term.key in evidence.polarity:
        return 1.0
    low = term.text.lower()
    if 2 <= len(low) <= 5 and low in evidence.initials and (term.text.isupper() or term.name):
        return 1.0
    if term.name:
        alike = evidence.beginnings.get(term.key[:5], ()) if len(term.key) >= 7 else ()
        misspelt = any(Levenshtein.distance(term.key, other, score_cutoff=1) <= 1 for other in alike)
        return 0.9 if misspelt or (len(term.key) >= 4 and root(term.key) in evidence.roots) else 0.0
    return 0.9 if _other_form(term, evidence) else 0.0


def _other_form(term: Term, evidence: Evidence) -> bool:
    """`historical` for `history`, `taller` for `tall`, `unavailable` for `not available`, `not open` for `closed`."""
    if any(_share_stem(term.key, other) for other in evidence.beginnings.get(term.key[:5], ())):
        return True
    low = term.text.lower()
    if low.endswith(("er", "est")) and word_key(low.removesuffix("er").removesuffix("est")) in evidence.polarity:
        return True
    if any(True in evidence.polarity.get(base, ()) for base in denied_words(low)):
        return True
    return term.denied and bool(opposites().get(term.key, set()) & evidence.polarity.keys())


def _share_stem(one: str, other: str) -> bool:
    longer = max(len(one), len(other))
    shared = next((place for place in range(longer) if one[place : place + 1] != other[place : place + 1]), longer)
    return shared >= 5 and shared >= 0.55 * longer


def _missing_message(terms: Sequence[Term]) -> str:
    listed = ", ".join(dict.fromkeys(f"“{term.text}”" for term in terms[:5]))
    return f"the context does not mention {listed}" if terms else "the context may say it in other words"
