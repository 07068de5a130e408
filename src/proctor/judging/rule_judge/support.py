"""Whether passages support a statement: which parts they mention, and what in them contradicts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from proctor.base.records import record
from proctor.judging.rule_judge.contradictions import contradictions
from proctor.judging.rule_judge.dates import Day, within
from proctor.judging.rule_judge.evidence import Evidence, library
from proctor.judging.rule_judge.passage_reading import Reading, Term, read
from proctor.judging.rule_judge.quantities import Quantity, same
from proctor.judging.rule_judge.statements import statements
from proctor.judging.rule_judge.stemming import root
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT, key, opposites

Verdict = Literal["supported", "contradicted", "unmentioned"]

SUPPORTED_FROM = 0.67
"""From this score on a statement counts as supported."""
_SPECIFIC_MISSING = 0.66
"""The most that a statement gets of which a name, a number or a date is nowhere in the evidence."""
_CONTRADICTED = 0.5
_ABOUT_THE_SPEAKER = 0.8
"""What is left of the score when the evidence speaks against a statement, and when it is about its speaker, whom the
evidence does not know."""
_REMARK = 0.7
"""The least that words without a claim get, such as a greeting: they are not from the evidence, yet do no harm."""
_DENYING_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non")


@record
class Support:
    """How well passages back a statement, and why."""

    score: float
    verdict: Verdict
    reason: str


@record
class Grounding:
    """How well passages back a whole answer."""

    score: float | None
    """`None` of an answer that claims nothing."""
    statements: tuple[tuple[str, Support], ...]
    """Each statement with its own verdict."""


@record
class Coverage:
    """Which share of a statement the evidence mentions, and what it does not."""

    share: float
    missing: tuple[Term, ...]
    claims: bool
    """Whether there is anything to support at all."""


def support(statement: str, passages: str | Sequence[str]) -> Support:
    """Whether the passages back the statement; a statement that claims nothing is supported."""
    said = read(statement)
    evidence = library(passages).evidence(said)
    return weigh(said, evidence)


def attributable(statement: str, passages: str | Sequence[str]) -> tuple[int | None, Support]:
    """The first passage that backs the statement by itself, and how well; `None` and the best try if none does."""
    best = Support(0.0, "unmentioned", "there is no passage")
    for index, passage in enumerate([passages] if isinstance(passages, str) else passages):
        judged = support(statement, passage)
        if judged.verdict == "supported":
            return index, judged
        best = max(best, judged, key=lambda found: found.score)
    return None, best


def grounding(answer: str, passages: str | Sequence[str]) -> Grounding:
    """Whether the passages back a whole answer: half its average statement, half its worst."""
    found: list[tuple[str, Support]] = []
    weights: list[int] = []
    for statement in statements(answer):
        said = read(statement)
        found.append((statement, weigh(said, library(passages).evidence(said))))
        weights.append(sum(term.weight > GRAMMAR_WEIGHT for term in said.terms))
    if not any(weights):
        return Grounding(None, tuple(found))
    scores = [judged.score for _, judged in found]
    average = sum(score * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights)
    return Grounding((average + min(scores)) / 2, tuple(found))


def weigh(said: Reading, evidence: Evidence) -> Support:
    covered = coverage(said, evidence)
    if not covered.claims:
        return Support(covered.share, "supported", "makes no claim")
    score = covered.share
    if said.first_person and not any(reading.first_person for reading in evidence.readings):
        score *= _ABOUT_THE_SPEAKER
    specific = [term for term in covered.missing if term.name or term.fact is not None]
    against = next(iter(contradictions(said, evidence)), "")
    if specific and not against:
        near = _about_the_same(said, evidence)
        against = next((found for term in specific if (found := _rival(term, near))), "")
    if against:
        return Support(_CONTRADICTED * score, "contradicted", against)
    if specific:
        return Support(min(_SPECIFIC_MISSING, score), "unmentioned", _absent(specific))
    if score < SUPPORTED_FROM and evidence.is_data and _borne_out(said, covered):
        return Support(SUPPORTED_FROM, "supported", "the data says so, as far as data can")
    if score < SUPPORTED_FROM:
        return Support(score, "unmentioned", _absent(covered.missing))
    return Support(score, "supported", "the context says so")


def _borne_out(said: Reading, covered: Coverage) -> bool:
    """Data has no words around its values: all facts of a statement are there, or at least half of its words."""
    telling = [term for term in said.terms if term.weight > GRAMMAR_WEIGHT]
    facts = [term for term in telling if term.fact is not None]
    return bool(facts) or 2 * len(covered.missing) <= len(telling)


def coverage(said: Reading, evidence: Evidence) -> Coverage:
    """Half of the share counts what words tell, half counts words alike: copied grammar is a trace of copied claims."""
    told = total = words = found = 0.0
    missing: list[Term] = []
    for index, term in enumerate(said.terms):
        words += 1
        total += term.weight
        if term.weight <= GRAMMAR_WEIGHT:
            found += term.key in evidence.polarity
            continue
        credit = credit_at(said.terms, index, evidence)
        told += term.weight * credit
        found += credit
        if not credit:
            missing.append(term)
    alike = found / words if words else 1.0
    share = (told / total + alike) / 2 if total else _REMARK + (1 - _REMARK) * alike
    return Coverage(share, tuple(missing), total > 0)


def credit_at(terms: tuple[Term, ...], index: int, evidence: Evidence) -> float:
    """How far the evidence mentions one of the terms, by itself or with its neighbour."""
    return _credit(terms[index], evidence) or _beside_another(terms, index, evidence)


def _credit(term: Term, evidence: Evidence) -> float:
    """How far the evidence mentions a term: 1 as it is, a little less in another form, 0 not at all."""
    if isinstance(term.fact, Quantity):
        return float(_number_known(term.fact, evidence))
    if isinstance(term.fact, Day):
        return float(within(term.fact, evidence.days, evidence.years))
    if term.key in evidence.polarity or term.key in evidence.joined:
        return 1.0
    low = term.text.lower()
    if 2 <= len(low) <= 5 and low in evidence.initials and (term.text.isupper() or term.name):
        return 1.0
    if term.name:
        related = len(term.key) >= 4 and root(term.key) in evidence.roots
        return 0.9 if related or _misspelt(term.key, evidence) else 0.0
    return 0.9 if _other_form(term, evidence) else 0.0


def _misspelt(name: str, evidence: Evidence) -> bool:
    """A long name in which one letter is missing, too many or another one."""
    if len(name) < 7:
        return False
    from rapidfuzz.distance import Levenshtein

    near = evidence.beginnings.get(name[:5], ())
    return any(abs(len(name) - len(other)) <= 1 and Levenshtein.distance(name, other) <= 1 for other in near)


def _other_form(term: Term, evidence: Evidence) -> bool:
    """`historical` for `history`, `unavailable` for `available`, `not open` for `closed`."""
    if any(_derived(term.key, other) for other in evidence.beginnings.get(term.key[:5], ())):
        return True
    low = term.text.lower()
    if low.endswith(("er", "est")) and key(low.removesuffix("er").removesuffix("est")) in evidence.polarity:
        return True
    if any(low.startswith(prefix) and key(low[len(prefix) :]) in evidence.polarity for prefix in _DENYING_PREFIXES):
        return True
    return term.denied and bool(opposites().get(term.key, frozenset()) & evidence.polarity.keys())


def _derived(one: str, other: str) -> bool:
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    return shared >= 5 and shared >= 0.55 * max(len(one), len(other))


def _number_known(said: Quantity, evidence: Evidence) -> bool:
    if any(same(said, known) for known in evidence.quantities):
        return True
    if said.unit in ("", "ordinal"):
        parts = {part for day in evidence.days for part in (day.year, day.day)}
        return said.value in parts
    return False


def _beside_another(terms: tuple[Term, ...], index: int, evidence: Evidence) -> float:
    """A word that is half of one the evidence writes together, or a first name where it gives the family name alone."""
    for first in (index - 1, index):
        if first >= 0 and first + 1 < len(terms):
            together = key((terms[first].text + terms[first + 1].text).lower())
            if together in evidence.polarity:
                return 1.0
    after = terms[index + 1] if index + 1 < len(terms) else None
    if terms[index].name and after is not None and after.name and after.key in evidence.polarity:
        return 0.0 if after.key in evidence.after_names else 0.8
    return 0.0


def _rival(term: Term, near: Evidence) -> str:
    """What the evidence has in the place of a number or date that it does not mention."""
    if isinstance(term.fact, Day) and near.days:
        return f"the date {term.text} is not in the context (it says {near.days[0].text})"
    if isinstance(term.fact, Quantity):
        for known in near.quantities:
            if known.value == term.fact.value and known.unit != term.fact.unit and known.unit and term.fact.unit:
                return f"the context says {known.text}, not {term.text}"
        alike = [known for known in near.quantities if known.unit == term.fact.unit]
        for known in alike or near.quantities:
            if not known.unit or not term.fact.unit or known.unit == term.fact.unit:
                return f"the number {term.text} is not in the context (it says {known.text})"
    return ""


def _about_the_same(said: Reading, evidence: Evidence) -> Evidence:
    """The sentences of the evidence that share at least half of the words it has in common with the statement."""
    told = {term.key for term in said.terms if term.weight > GRAMMAR_WEIGHT and term.fact is None}
    common = told & evidence.polarity.keys()
    if told and not common:
        return Evidence([])
    return Evidence([reading for reading in evidence.readings if 2 * len(common & reading.keys) >= len(common)])


def _absent(terms: Sequence[Term]) -> str:
    shown = ", ".join(dict.fromkeys(f"“{term.text}”" for term in terms[:5]))
    return f"the context does not mention {shown}" if shown else "the context says it in other words, if at all"
