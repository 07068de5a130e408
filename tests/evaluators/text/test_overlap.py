"""BLEU, ROUGE and METEOR, against the packages whose numbers they give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from nltk.translate.meteor_score import single_meteor_score
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu import sentence_bleu

from proctor.base.errors import UsageError
from proctor.base.json_data import UNSET
from proctor.cases.suite import EvaluatorSpec, NamedData
from proctor.evaluators.evaluable import Evaluable
from proctor.evaluators.evaluation import NothingToCompare
from proctor.evaluators.registry import resolve_evaluator
from proctor.evaluators.text import overlap
from proctor.evaluators.text.overlap import BLEU, METEOR, ROUGE, mteval_tokens, unicode_words
from proctor.evaluators.text.porter import stem

WORDS = """
the The a cat cats sat, on. mat running runs run dogs dog's 3.5 1,000 10-20 e-mail don't &amp; &lt; <b> .. , -
(x) [1] $5 50% _y_ quick quickly happiness happy relational organization formalize I it's naïve café
""".split()
SUFFIXES = """
ational tional enci anci izer bli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti
iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent
ion sion tion ou ism ate iti ous ive ize ing ed eed ies ied sses ss s y ll e at bl iz
""".split()
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=14).map(" ".join)
ascii_sentences = sentences.filter(str.isascii)
any_text = st.text(max_size=40)
made_words = st.tuples(
    st.text(alphabet="aeioubcdlstyzhé", max_size=6), st.lists(st.sampled_from(SUFFIXES), max_size=3)
).map(lambda parts: parts[0] + "".join(parts[1]))
VOCABULARY = """
caresses ponies ties caress cats feed agreed plastered bled motoring sing conflated troubled sized hopping
tanned falling hissing fizzed failing filing happy sky skies dying lying tying news innings outings cannings
howe proceed exceed succeed died dies spied flies enjoy enjoyment spy try conditional rational valency
hesitancy digitizer conformably radically differently vilely analogously vietnamization predication operator
feudalism decisiveness hopefulness callousness formality sensitivity sensibility triplicate formative
electricity electrical goodness revival allowance inference airliner gyroscopic adjustable defensible irritant
replacement adjustment dependent adoption communism activate angularity homologous effective bowdlerize
probate rate cease controlling rolled geology theology archaeology fully carefully syzygy yyyyyy by
""".split()


class NoSynonyms:
    def synsets(self, word: str) -> list[Any]:
        return []


def score(evaluator: Any, output: Any, expectation: Any) -> float:
    result: float = evaluator(_seen(output, expectation)).score
    return result


def _seen(output: Any, expectation: Any) -> Evaluable:
    return Evaluable(eval_output=(NamedData("output", output),), expectation=expectation)


EVALUATORS = [
    BLEU(),
    BLEU(tokenizer="13a"),
    ROUGE(),
    ROUGE(variant="rouge1"),
    ROUGE(variant="rouge2"),
    ROUGE(variant="rouge1", tokenizer="typescript"),
    METEOR(synonyms=False),
]


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_without_a_reference_text_there_are_no_words_to_compare(evaluator: Any) -> None:
    with pytest.raises(NothingToCompare, match="expected output"):
        evaluator(_seen("text", UNSET))


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=30))
@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_identical_texts_score_one_in_every_script(evaluator: Any, text: str) -> None:
    assert score(evaluator, text, text) == pytest.approx(1.0)


@given(any_text, any_text)
@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_any_two_texts_get_a_score_in_range(evaluator: Any, output: str, expectation: str) -> None:
    try:
        assert 0.0 <= score(evaluator, output, expectation) <= 1.0
    except NothingToCompare as reason:
        assert "words" in str(reason)


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("nothing", ["", "  \n", None])
def test_where_nothing_is_expected_only_nothing_is_right(evaluator: Any, nothing: Any) -> None:
    assert score(evaluator, None, nothing) == 1.0
    assert score(evaluator, "words", nothing) == 0.0
    assert score(evaluator, nothing, "words") == 0.0


@given(sentences | any_text, sentences | any_text)
def test_bleu_gives_the_numbers_of_sacrebleu(output: str, expectation: str) -> None:
    if output.strip() and expectation.strip():
        reference = sentence_bleu(output, [expectation], smooth_method="exp").score / 100
        assert score(BLEU(tokenizer="13a"), output, expectation) == pytest.approx(reference, abs=1e-9)


@given(sentences, sentences)
def test_bleu_of_spaced_scripts_is_the_same_with_either_tokenizer(output: str, expectation: str) -> None:
    assert score(BLEU(), output, expectation) == score(BLEU(tokenizer="13a"), output, expectation)


@pytest.mark.parametrize(
    ("output", "expectation"),
    [("今天天气很好。", "今天天气非常好。"), ("ผมชอบกินข้าวมาก", "ผมชอบกินข้าว"), ("오늘 날씨가 좋다", "오늘 날씨는 좋다")],
)
@pytest.mark.parametrize("evaluator", [BLEU(), ROUGE(), ROUGE(variant="rouge1"), METEOR(synonyms=False)])
def test_texts_without_spaces_between_words_are_compared_by_their_parts(
    evaluator: Any, output: str, expectation: str
) -> None:
    assert 0.3 < score(evaluator, output, expectation) < 1.0


@given(ascii_sentences | st.text(alphabet=st.characters(max_codepoint=127)), ascii_sentences)
@pytest.mark.parametrize("variant", ["rouge1", "rouge2", "rougeL"])
@pytest.mark.parametrize("stems", [True, False])
def test_rouge_gives_the_numbers_of_rouge_score(variant: str, stems: bool, output: str, expectation: str) -> None:
    reference = RougeScorer([variant], use_stemmer=stems).score(expectation, output)[variant]
    try:
        scores = [score(ROUGE(variant=variant, stem=stems, measure=m), output, expectation) for m in "prf"]
    except NothingToCompare:
        assert reference.fmeasure == 0
        return
    answer, wanted = unicode_words(output, stems=stems), unicode_words(expectation, stems=stems)
    if not wanted:
        assert set(scores) == {float(output == expectation)}
    elif answer == wanted:
        assert set(scores) == {1.0}
    else:
        assert scores == pytest.approx([reference.precision, reference.recall, reference.fmeasure])


@pytest.mark.parametrize(
    ("output", "expectation", "python", "typescript"),
    [
        ("the the the cat", "the cat", 2 / 3, 1.0),
        ("running dogs", "run dog", 1.0, 0.0),
        ("Café is open", "Cafe is open", 2 / 3, 2 / 3),
        ("don't", "dont", 0.0, 0.0),
        ("naïve_x", "naïve x", 1.0, 0.4),
    ],
)
def test_rouge_counts_as_each_of_the_two_adks_does(
    output: str, expectation: str, python: float, typescript: float
) -> None:
    assert score(ROUGE(variant="rouge1"), output, expectation) == pytest.approx(python)
    assert score(ROUGE(variant="rouge1", tokenizer="typescript"), output, expectation) == pytest.approx(typescript)


@pytest.mark.parametrize("text", ["สวัสดีครับ", "今天天气很好", "مرحبا بالعالم", "नमस्ते दुनिया"])
def test_every_script_has_words_for_rouge(text: str) -> None:
    evaluation = ROUGE(variant="rouge1")(_seen(f"{text} extra", text))
    assert evaluation.details["recall"] == 1.0
    assert evaluation.details["precision"] < 1.0


def test_the_typescript_rouge_has_no_words_for_thai_and_says_so() -> None:
    with pytest.raises(NothingToCompare, match="words"):
        score(ROUGE(variant="rouge1", tokenizer="typescript"), "ครับ", "สวัสดี")


def test_the_typescript_rouge_stems_when_asked() -> None:
    assert score(ROUGE(variant="rouge1", tokenizer="typescript"), "connected", "connection") == 0.0
    assert score(ROUGE(variant="rouge1", tokenizer="typescript", stem=True), "connected", "connection") == 1.0


@given(made_words | st.sampled_from(VOCABULARY) | st.text(max_size=12))
def test_stems_are_those_of_nltk(word: str) -> None:
    assert stem(word) == PorterStemmer().stem(word)


@pytest.mark.parametrize("word", VOCABULARY)
def test_stems_of_the_classic_examples_are_those_of_nltk(word: str) -> None:
    assert stem(word) == PorterStemmer().stem(word)


@given(sentences | any_text, sentences | any_text)
def test_meteor_gives_the_numbers_of_nltk_unless_the_texts_are_identical(output: str, expectation: str) -> None:
    answer, reference = mteval_tokens(output.lower()), mteval_tokens(expectation.lower())
    spaced = len(overlap.spaced(output + expectation)) == len(output + expectation)
    if spaced and answer and reference and answer != reference:
        number = single_meteor_score(reference, answer, wordnet=NoSynonyms())
        assert score(METEOR(synonyms=False), output, expectation) == pytest.approx(number)


def test_meteor_says_which_stages_it_used_and_what_each_matched() -> None:
    evaluation = METEOR(synonyms=False)(_seen("the dogs ran", "the dog ran"))
    assert evaluation.details["stages"] == ["exact", "stem"]
    assert evaluation.details["matches"] == {"exact": 2, "stem": 1}
    assert "exact and stem" in evaluation.reasoning


def test_meteor_matches_synonyms_where_a_dictionary_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {"car": {"car", "auto"}}
    monkeypatch.setattr(overlap, "wordnet_synonyms", lambda: lambda word: groups.get(word, {word}))
    evaluation = METEOR(synonyms=True)(_seen("a red car", "a red auto"))
    assert evaluation.details["matches"] == {"exact": 2, "stem": 0, "synonym": 1}
    assert evaluation.score > score(METEOR(synonyms=False), "a red car", "a red auto")


def test_meteor_that_insists_on_synonyms_is_refused_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "wordnet_synonyms", lambda: None)
    with pytest.raises(UsageError, match="WordNet"):
        resolve_evaluator(EvaluatorSpec("METEOR", {"synonyms": True}))
    assert METEOR()(_seen("a car", "a bus")).details["stages"] == ["exact", "stem"]


def test_the_parameters_of_meteor_change_the_score() -> None:
    pair = ("the cat sat on a mat", "on the mat sat the cat")
    assert (
        len(
            {
                score(METEOR(synonyms=False, **{name: value}), *pair)
                for name, value in [("alpha", 0.9), ("alpha", 0.1), ("beta", 1.0), ("gamma", 0.1)]  # type: ignore[arg-type]
            }
        )
        >= 3
    )


@pytest.mark.parametrize("evaluator", [BLEU(), ROUGE(), METEOR(synonyms=False)])
def test_a_megabyte_of_words_is_no_trouble(evaluator: Any) -> None:
    text = " ".join(f"word{index % 5000}" for index in range(100_000))
    assert 0.0 < score(evaluator, text, text[1000:]) <= 1.0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("BLEU", {"tokenizer": "words"}, "tokenizer must be one of"),
        ("ROUGE", {"variant": "rouge9"}, "variant must be one of"),
        ("ROUGE", {"measure": "x"}, "measure must be one of"),
        ("ROUGE", {"stem": "yes"}, "true or false"),
        ("ROUGE", {"tokenizer": "typescript"}, "only with variant rouge1"),
        ("METEOR", {"alpha": 2}, "between 0 and 1"),
        ("METEOR", {"beta": -1}, "at least 0"),
    ],
)
def test_arguments_of_lexical_evaluators_that_make_no_sense_are_refused(
    name: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        resolve_evaluator(EvaluatorSpec(name, arguments))
