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
"""Pairs of share and weight: below the share, with at least this weight missing, a statement is unmentioned."""
MAX_OWN_WORDS = (1, 20)
"""How many words of a statement may be missing in the evidence: this many, or one in this many, if that is more.

More of them may change what the statement says.
"""


@dataclass(frozen=True, slots=True)
class Support:
    """Whether passages support a statement, and why."""

    verdict: SupportVerdict
    reason: str
    share: float
    """The share of the statement that they mention."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of a statement that the evidence mentions, and the terms it does not."""

    share: float
    missing: tuple[Term, ...]
    own: int
    """The number of its words, including grammar but not numbers, that the evidence does not have."""


def support(statement: str, passages: str | Sequence[str], known: Sequence[str] = ()) -> Support:
    """Whether the passages support the statement.

    `known` are texts that the statement may repeat, such as the question; they support it but never contradict it.
    """
    reading = read_statement(without_courtesy(statement))
    evidence = passage_index(passages).evidence(reading)
    result = judge_statement(reading, evidence)
    if not known or result.verdict == "supported":
        return result
    with_known = judge_statement(reading, evidence, passage_index(known).evidence(reading).readings)
    is_reworded = not evidence.is_data and _is_reworded(reading, coverage(reading, evidence))
    if with_known.verdict == "supported" and is_reworded:
        return Support("unclear", "only the question says all of it", result.share)
    return with_known


def _is_reworded(statement: Reading, covered: Coverage) -> bool:
    return covered.own > max(MAX_OWN_WORDS[0], len(statement.terms) // MAX_OWN_WORDS[1])


def judge_statement(statement: Reading, grounds: Evidence, known: Sequence[Reading] = ()) -> Support:
    """Whether `grounds` support a statement; `known` may be repeated, but never contradicts."""
    readings = [*grounds.readings, *known]
    evidence = Evidence(readings, is_data=grounds.is_data, has_speaker=grounds.has_speaker) if known else grounds
    covered = coverage(statement, evidence)
    if not any(term.weight > GRAMMAR_WEIGHT for term in statement.terms):
        return Support("unclear", "it has no content that can be looked up", covered.share)
    found = list(compare_values(statement, grounds.readings, known))
    other_values = (match.reason for match in found if match.verdict == "other")
    contradiction = next(contradictions(statement, grounds), "") or next(other_values, "")
    if contradiction:
        return Support("contradicted", contradiction, covered.share)
    absent = _missing_message(covered.missing)
    missing_facts = [term for term in covered.missing if _is_name_or_number(term)]
    if missing_facts and len(missing_facts) == len(covered.missing) and not evidence.is_data:
        return Support("unmentioned", absent, covered.share)
    figures = [term for term in statement.terms if term.fact is not None and _is_name_or_number(term)]
    # The first word of a sentence has a capital and may be taken for a name.
    has_all_figures = bool(figures) and not any(term is not statement.terms[0] for term in missing_facts)
    weight = sum(term.weight for term in covered.missing)
    is_new = any(covered.share < share and weight >= least for share, least in UNMENTIONED_BELOW)
    if is_new and not has_all_figures and not (evidence.is_data and _is_confirmed_by_data(statement, covered)):
        return Support("unmentioned", absent, covered.share)
    doubt = _doubt(statement, evidence, found)
    if doubt:
        return Support("unclear", doubt, covered.share)
    is_stated = not covered.missing and not _is_reworded(statement, covered)
    if is_stated or (evidence.is_data and _is_confirmed_by_data(statement, covered)):
        return Support("supported", "the context says so", covered.share)
    return Support("unclear", absent, covered.share)


def _is_name_or_number(term: Term) -> bool:
    """Whether it is a name with a capital or a number in digits: if only these are missing, they were invented."""
    if term.name:
        return term.text[0].isupper() and not (term.text.isupper() and len(term.text) <= 5)  # not an abbreviation
    return term.fact is not None and any(map(str.isdigit, term.text))


def _doubt(statement: Reading, evidence: Evidence, found: Sequence[ValueMatch]) -> str:
    """Why a statement may not be supported although its words are there; empty if there is no doubt."""
    if statement.first_person and not evidence.has_speaker:
        return "a first-person statement; cannot be checked against the context"
    if not evidence.is_data and _YES_OR_NO.match(statement.text):
        return "the context does not say what yes or no refers to"
    words = {term.text.lower() for term in statement.terms} & QUANTIFIERS
    quantifier = "" if evidence.is_data else min(words - {term.text.lower() for term in evidence.terms}, default="")
    if quantifier:
        return f"the context does not say “{quantifier}”"
    if any(not any(True in evidence.polarity.get(word, ()) for word in denied) for denied in statement.denials):
        return "the context does not deny it in the same words"
    doubtful = next((item.term.text for item in found if item.verdict == "doubtful" and not item.term.name), "")
    return f"“{doubtful}” may belong to something else" if doubtful else ""


_YES_OR_NO = re.compile(
    r"\W{0,5}(?:(?:ah|oh|well|ok|okay)\W{1,3}){0,2}(?:yes|no|yeah|yea|yep|yup|nope)"
    r"(?:\s{0,2}[,.!;:-]|\s+(?:but|it|they|he|she|i|we|you)\b|$)",
    re.IGNORECASE,
)


def _is_confirmed_by_data(statement: Reading, covered: Coverage) -> bool:
    """Whether data has all names and numbers of the statement, and either any number or half of its words.

    Data has few words around its values, so the other words cannot be expected in it.
    """
    if any(term.name or term.fact is not None for term in covered.missing):
        return False
    content = [term for term in statement.terms if term.weight > GRAMMAR_WEIGHT]
    return any(term.fact is not None for term in content) or 2 * len(covered.missing) <= len(content)


def coverage(statement: Reading, evidence: Evidence) -> Coverage:
    """How much of a statement the evidence mentions.

    The share is the mean of two: by weight, and by plain count of words, since copied grammar hints at a copied claim.
    """
    found_weight = total_weight = words = found = 0.0
    own = 0
    missing: list[Term] = []
    for index, term in enumerate(statement.terms):
        words += 1
        total_weight += term.weight
        if term.weight <= GRAMMAR_WEIGHT:
            found += term.key in evidence.polarity
            own += term.key not in evidence.polarity
            continue
        credit = credit_at(statement.terms, index, evidence)
        found_weight += term.weight * credit
        found += credit
        if not credit:
            missing.append(term)
            own += term.fact is None
    word_share = found / words if words else 1.0
    share = (found_weight / total_weight + word_share) / 2 if total_weight else 1.0
    return Coverage(share, tuple(missing), own)


def credit_at(terms: Sequence[Term], index: int, evidence: Evidence) -> float:
    """How well the evidence mentions the term at `index`, from 0 to 1: alone, or as one word with a neighbor.

    A first name counts, too, if the evidence has the family name without a first name.
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
    """How well the evidence mentions a term: 1 as it is, a little less in another form, 0 if not at all."""
    if isinstance(term.fact, Quantity):
        parts = {part for day in evidence.days for part in (day.year, day.day)}
        dated = term.fact.unit in ("", "ordinal") and term.fact.value in parts
        return float(dated or any(same_quantity(term.fact, item) for item in evidence.quantities))
    if isinstance(term.fact, PartialDate):
        return float(matches_known_date(term.fact, evidence.days, evidence.years))
    if term.key in evidence.polarity:
        return 1.0
    low = term.text.lower()
    if 2 <= len(low) <= 5 and low in evidence.initials and (term.text.isupper() or term.name):
        return 1.0
    if term.name:
        alike = evidence.beginnings.get(term.key[:5], ()) if len(term.key) >= 7 else ()
        misspelled = any(Levenshtein.distance(term.key, other, score_cutoff=1) <= 1 for other in alike)
        return 0.9 if misspelled or (len(term.key) >= 4 and root(term.key) in evidence.roots) else 0.0
    return 0.9 if _other_form(term, evidence) else 0.0


def _other_form(term: Term, evidence: Evidence) -> bool:
    """Whether the evidence has another form of the term, as `history` for `historical` or `closed` for `not open`."""
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
