"""Decides whether passages support a claim, contradict it, or leave it open.

A claim is supported if a source says it: aligned with one sentence (or one of its clauses), nothing is changed, nothing
is added, and nothing is left out that could limit the statement. It is contradicted if all of this holds but for one
slot that the source fills with something incompatible, one negation, or two fillers that changed places. Everything
else is left open: shared words prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.alignment import Edits, align
from proctor.judging.rule_judge.claims import without_courtesy
from proctor.judging.rule_judge.reading import (
    Sentence,
    Sources,
    Token,
    Tokens,
    content,
    fold,
    matches,
    names_in,
    read,
    read_sources,
)
from proctor.judging.rule_judge.records import OPEN, Verdict, all_of, judge_records
from proctor.judging.rule_judge.rewriting import (
    is_verb,
    split_clauses,
    stated,
    subject,
    variants,
    without_marks,
)


def judge_claims(claims: Sequence[str], passages: Sequence[str], known: Sequence[str] = ()) -> list[Verdict]:
    """The verdict on each claim. `known` is what the user said: it can support a claim, but not contradict it."""
    sources = read_sources(tuple(passages), tuple(claims))
    said = read_sources(tuple(known), tuple(claims)) if known else Sources()
    verdicts: list[Verdict] = []
    before: Tokens = ()
    for text in claims:
        tokens = _resolved(read(without_courtesy(text) or text, sources.names | names_in(claims)), before)
        # A pronoun after a claim that is not in the passages may stand for anything.
        is_vague = bool(tokens) and tokens[0].key in lexicon.PRONOUNS and bool(verdicts)
        is_lost = is_vague and verdicts[-1].answer != "supported"
        verdicts.append(OPEN if is_lost else _judge(text, tokens, sources, said))
        before = _antecedent(tokens)
    return verdicts


def _judge(text: str, tokens: Tokens, sources: Sources, said: Sources) -> Verdict:
    if copy := next((each for each in sources.sentences if _bare(each.text) == _bare(text)), None):
        return Verdict("supported", f"the passages say “{copy.text}”")
    if not content(tokens):
        return OPEN
    if not lexicon.is_english(fold(text)):
        return Verdict("cannot tell", "the rules are for English")
    known = frozenset(token.key for each in said.sentences for token in each.tokens)
    whole = _judge_tokens(tokens, sources, known)
    is_linked = any(token.text.lower() in lexicon.LINKS for token in tokens)
    if whole.answer == "cannot tell" and not is_linked and len(clauses := split_clauses(tokens)) > 1:
        whole = all_of([_judge_tokens(clause, sources, known) for clause in clauses])
    if whole.answer == "cannot tell" and any(_has_run(_assumed(each), tokens) for each in said.sentences):
        return Verdict("supported", "the user said it")
    return whole


def _assumed(sentence: Sentence) -> Tokens:
    """What the user's question assumes: `… if the amount is 500?`. Repeating a whole message proves nothing."""
    place = next((index for index, token in enumerate(sentence.tokens) if token.key == "if"), len(sentence.tokens))
    return sentence.tokens[place + 1 :] if sentence.text.rstrip().endswith("?") else ()


def _has_run(tokens: Tokens, claim: Tokens) -> bool:
    """Whether a text has the claim word by word."""
    ours, theirs = ([token.key for token in without_marks(each)] for each in (claim, tokens))
    return any(theirs[start : start + len(ours)] == ours for start in range(len(theirs) - len(ours) + 1))


def _bare(text: str) -> str:
    """A text without the differences between copies: case, white space, and marks at its ends."""
    return " ".join(text.casefold().split()).strip(" .!?;,\"'“”*")


def _judge_tokens(tokens: Tokens, sources: Sources, known: frozenset[str]) -> Verdict:
    """Any source that proves it decides; otherwise any that refutes it."""
    found: list[Verdict] = []
    ways = variants(tokens)
    if tokens[0].key in lexicon.PRONOUNS and (topic := _topic(sources)):
        ways += variants((*topic, *tokens[1:]))
    before: Tokens = ()
    for sentence in sources.sentences:
        resolved = _resolved(sentence.tokens, before)
        before = _antecedent(resolved)
        statements = stated(sentence.tokens) + (stated(resolved) if resolved != sentence.tokens else [])
        for source in statements:
            found += [_compare(claim, source, sentence, sources) for claim in ways if _related(claim, source)]
    found += judge_records(tokens, sources.records, known)
    for answer in ("supported", "contradicted", "unmentioned"):
        if decisive := next((each for each in found if each.answer == answer), None):
            return decisive
    return OPEN


def _antecedent(tokens: Tokens) -> Tokens:
    """What a pronoun in the next sentence stands for: the subject, if the sentence says what it is or was.

    After "The mayor opened the park", `it` is the park.
    """
    about = subject(tokens)
    verb = next((token for token in without_marks(tokens)[len(about) :] if is_verb(token)), None)
    return about if verb is not None and verb.key in ("be", "was") else ()


def _resolved(tokens: Tokens, before: Tokens) -> Tokens:
    """The sentence with a pronoun at its start replaced by the subject of the sentence before."""
    if tokens and tokens[0].key in lexicon.PRONOUNS and before and before[0].key not in lexicon.PRONOUNS:
        return (*before, *tokens[1:])
    return tokens


_LIMITS = ("negation", "modal", "quantifier", "limit", "condition")


def _topic(sources: Sources) -> Tokens:
    """The subject of the passages, which a pronoun stands for, if they have only one."""
    subjects = {subject(sentence.tokens) for sentence in sources.sentences} - {()}
    named = {each for each in subjects if each[0].key not in lexicon.PRONOUNS}
    return next(iter(named)) if len(named) == 1 and not sources.records else ()


def _related(claim: Tokens, source: Tokens) -> bool:
    """Whether an alignment can succeed at all: most content of the claim is in the source."""
    keys = {token.key for token in source}
    words = [token for token in claim if token.kind == "word"]
    return sum(token.key in keys for token in words) >= len(words) - 1 and bool(words or len(claim) > 1)


def _compare(claim: Tokens, source: Tokens, sentence: Sentence, sources: Sources) -> Verdict:
    edits = align(claim, source)
    if edits is None:
        return OPEN
    quote = f"the passages say “{sentence.text}”"
    if _is_reversed(claim, source):
        return Verdict("contradicted", f"the roles are exchanged; {quote}")
    if not all(_is_droppable(run, source) for run in edits.dropped):
        return _refute_dropped(edits, quote)
    added = [token for token in edits.added if not _is_harmless(token)]
    if not added and not edits.changed:
        return Verdict("supported", quote)
    if not edits.changed and [token.kind for token in added] == ["negation"]:
        return Verdict("contradicted", f"it adds “{added[0].text}”; {quote}")
    if added:
        return _refute_added(added, edits, sources, quote)
    if len(edits.changed) == 1:
        ours, theirs = edits.changed[0]
        if _is_elsewhere(ours, claim, sentence, source, sources):
            return OPEN
        return Verdict("contradicted", f"it says “{ours.text}” instead of “{theirs.text}”; {quote}")
    if len(edits.changed) == 2:
        (one, first), (other, second) = edits.changed
        if matches(one, second) and matches(other, first):
            return Verdict("contradicted", f"“{one.text}” and “{other.text}” are exchanged; {quote}")
    return OPEN


def _refute_dropped(edits: Edits, quote: str) -> Verdict:
    """A claim that leaves out only a negation, or a `might`, says the opposite or more."""
    if edits.changed or any(not _is_harmless(token) for token in edits.added):
        return OPEN
    runs = [[token for token in run if not _is_harmless(token)] for run in edits.dropped]
    dropped = [token for run in runs for token in run]
    if len(dropped) == 1 and (dropped[0].kind == "negation" or dropped[0].key in ("might", "could")):
        return Verdict("contradicted", f"it leaves out “{dropped[0].text}”; {quote}")
    return OPEN


def _refute_added(added: Sequence[Token], edits: Edits, sources: Sources, quote: str) -> Verdict:
    """A claim that repeats a source and adds one value that no passage has."""
    values = [token for token in added if token.value is not None or token.kind == "name"]
    values = [token for token in values if token.value is None or token.value.unit != "ordinal"]
    others = [token for token in added if token not in values and token.key not in lexicon.PREPOSITIONS]
    if edits.changed or len(values) != 1 or others or edits.kept < 3 or _occurs(values[0], sources):
        return OPEN
    return Verdict("unmentioned", f"“{values[0].text}” is not in the passages; {quote}")


def _occurs(token: Token, sources: Sources) -> bool:
    tokens = [each for sentence in sources.sentences for each in sentence.tokens]
    tokens += [each for record in sources.records for _, value in record.fields for each in value]
    tokens += [each for record in sources.records for name in record.identity for each in name]
    return any(matches(token, each) or matches(each, token) for each in tokens)


def _is_harmless(token: Token) -> bool:
    """Whether the token may be added or left out without a change of meaning."""
    return token.key in lexicon.HARMLESS or token.key in ("your", "my", "our")


def _is_droppable(run: Sequence[Token], source: Tokens) -> bool:
    """Whether a claim may leave this out: the time, price or agent of a past event that nothing limits.

    "The road was closed on Monday" states that it was closed; "The road is closed on Mondays" does not say it is.
    """
    rest = [token for token in run if not _is_harmless(token)]
    if not rest:
        return True
    is_past = any(token.key == "was" or token.key.endswith("+ed") for token in source)
    if not is_past or any(token.kind in _LIMITS for token in source) or any(is_verb(token) for token in rest):
        return False
    first = rest[0].key
    has_time = first in ("in", "on", "at", "during") and any(token.kind in ("date", "clock") for token in rest)
    has_price = first == "for" and any(token.kind == "number" for token in rest)
    return (has_time or has_price or first == "by") and len(rest) <= 6


def _is_elsewhere(token: Token, claim: Tokens, sentence: Sentence, source: Tokens, sources: Sources) -> bool:
    """Whether the passages have the claimed value in another place that may be about the claim's subject."""
    others = [each for each in claim if each.is_content and each != token]
    for other in sources.sentences:
        if not any(matches(token, each) for each in other.tokens):
            continue
        if other == sentence:
            clauses = split_clauses(sentence.tokens)
            own = [each for each in clauses if any(matches(token, word) for word in each)]
            if len(clauses) == 1 or any(subject(each) == subject(source) or not subject(each) for each in own):
                return True
            continue
        shared = sum(any(matches(each, word) for word in other.tokens) for each in others)
        if 2 * shared > len(others):
            return True
    return False


def _is_reversed(claim: Tokens, source: Tokens) -> bool:
    """Whether the claim is the source with both sides of its verb or relation exchanged."""
    if len(claim) != len(source):
        return False
    for index in range(1, len(source) - 1):
        pivot = source[index]
        asymmetric = pivot.kind == "relation" or (
            is_verb(pivot) and pivot.key.partition("+")[0] not in lexicon.SYMMETRIC
        )
        if asymmetric and pivot.kind != "modal" and pivot.key != "have":
            turned = (*source[index + 1 :], pivot, *source[:index])
            if turned != tuple(source) and all(map(matches, claim, turned)):
                return True
    return False
