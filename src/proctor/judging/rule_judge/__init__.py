"""The rule-based judge: proves or refutes by rules, without a model, a download or an account, and else abstains.

In: a `Question` of a known kind. Out: a reply of the same shape as a model's, with what it cannot tell marked.
`judge.py` maps kinds of questions to rules. `claims.py` splits texts into claims; `reading.py` (with `lexicon.py` and
the tables of `words.toml`) reads them into typed tokens. `grammar.py` says what a sentence states, and in which ways
that can be written; `proof.py` compares claims with all of these. `cells.py` reads tables and JSON, and finds the cell
that a claim is about. `agreement.py` compares an answer with a reference, and `relevance.py` with a question.
"""
