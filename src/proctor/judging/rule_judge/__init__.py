"""The rule-based judge: compares texts by rules, without a model, a download or an account.

In: a `Question` of a known kind. Out: a reply of the same shape as a model's, or an abstention where the rules cannot
decide. `judge.py` maps kinds of questions to rules. `statements.py` splits texts, `passage_reading.py`, `dates.py` and
`quantities.py` read a statement, `evidence.py` finds related sentences, `support.py`, `contradictions.py` and
`labelled_values.py` decide about a statement, `agreement.py` about an answer, `relevance.py` about a question.
"""
