"""The rule-based judge: proves or refutes by rules, without a model, a download or an account, and else abstains.

In: a `Question` of a known kind. Out: a reply of the same shape as a model's, with what it cannot tell marked.
`judge.py` maps kinds of questions to rules. `claims.py` splits texts into claims; `reading.py` (with `values.py`,
`lexicon.py` and the tables of `words.toml`) reads them into typed tokens. `grammar.py` finds the verb, the subject and
the parts of a sentence; `clauses.py` says what it states, and `forms.py` in which ways that can be written; `proof.py`
compares claims with all of these. `records.py` reads tables, JSON and lists, and `cells.py` finds the cell that a claim
is about. `agreement.py` compares an answer with a reference, and `relevance.py` with a question.
"""
