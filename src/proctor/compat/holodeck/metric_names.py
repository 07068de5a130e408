"""HoloDeck's metrics and the evaluators behind them."""

from __future__ import annotations

LEXICAL = {"bleu": "BLEU", "rouge": "ROUGE", "meteor": "METEOR"}
EXACT = {"equality": "Equality", "numeric": "Numeric"}
JUDGED = {
    "groundedness": "Groundedness",
    "relevance": "Relevance",
    "coherence": "Coherence",
    "fluency": "Fluency",
}
STANDARD = LEXICAL | EXACT | JUDGED
RAG = {
    "faithfulness": "Faithfulness",
    "contextual_relevancy": "ContextualRelevancy",
    "contextual_precision": "ContextualPrecision",
    "contextual_recall": "ContextualRecall",
    "answer_relevancy": "AnswerRelevancy",
}
