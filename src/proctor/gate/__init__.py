"""The regression gate: did this change make the agent worse?

Agents vary. One failure proves nothing, and a fixed pass rate is red on most days. So the gate spends trials where
they tell something, and is red only if what it saw is too unlikely for an agent that has not changed.

Round 1 runs every case once. A case that fails although it passed at least half of its baseline trials, or that scores
far below its baseline, is a *suspect*. The outcome that made it one is never used as evidence against it. Later rounds
re-run suspects only, until each is *regressed* (its re-runs are too unlikely for its baseline), *cleared* (they are as
good as the baseline, or can no longer show a regression) or *undecided* (its trials are used up). If many cases fail a
little more often, none of them can be proven alone: then all cases run again, and up to four *looks* at these rounds
test for a *suite-wide regression*. The first round only decides whether that is worth it, so an outage during it is no
evidence.

That compares with the past, and the past is another day. With `--against`, a second version of the agent runs in the
same minutes, and the pairs of trials are compared (`two_arm.py`).

The files, in the order of the data:

    baseline.py      the file in git with how often each case passed; adding a run to it
    beliefs.py       recorded passes become a distribution over the pass rate of a case, a mixture of Betas whose
                     weights are learned from the whole suite; a rate is never treated as known
    suspect_test.py  one suspect: every re-run moves a log likelihood ratio, broken against unchanged; its p-value is
                     the probability that any unchanged suspect ever gets this high within the trials allowed
    suite_test.py    the suite: if nothing changed, the failures of a case fall on its old and new trials like a random
                     shuffle; exact for up to 60 cases, a saddlepoint approximation above
    decision.py      which trials to run next and what they prove; how alpha is spent
    two_arm.py       the same with two versions of the agent, in pairs
    pair_evidence.py what a pair of trials proves
    drop_model.py    how believable it is that all rates dropped; leads the search for such a drop
    other_days.py    whether failures differ between days more than chance allows
    new_cases.py     cases without a baseline
    verdict.py       the verdict of the run and its reason, with errors, new cases and expired quarantines
    session.py       the gate in a run: finished trials in, requests for more trials out
    power.py         what a gated run costs and what it can detect, by simulation with decision.py
    flakiness.py     cases that both pass and fail

Alpha is the probability of a red build without a regression, 5 % by default. All suspects together get 33 % of it and
each look at the suite 8 %. The rest is a reserve for suites that are unlike the model; `benchmarks/gate_accuracy.py`
measures the false alarms. Every look and every suspect is accounted for, so each p-value can be compared with alpha.

An error is never evidence, and a suspect that has only errors is an error. The results that a run stores are in
`proctor.results.gate_result`. The engine calls `session.py` and runs what it requests; this package does not import the
engine, so `benchmarks/gate_accuracy.py` can drive the class that ships.

The page on the gate in `docs/` has the statistics and their assumptions.
"""
