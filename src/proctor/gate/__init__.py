"""The regression gate: did this change make the agent worse?

Agents vary. One failure proves nothing, and a fixed pass rate is red on most days. So the gate spends trials where
they tell something, and is red only if what it saw is too unlikely for an agent that has not changed.

Round 1 runs every case once. A case that fails although it usually passes, or that scores far below its usual range,
is a *suspect*. The outcome that made it one is never used as evidence against it. Further rounds run suspects only,
until each is *regressed* (its fresh trials are too unlikely for its usual rate), *cleared* (it behaves as usual, or
can no longer be proven) or *undecided* (its trials are used up). If many cases fail a little more often, none of them
can be proven alone: up to three *looks* at the first outcomes of all cases test the suite as a whole (*drift*).

How it works, in the order of the data:

    baseline.py      the file in git that says how often each case passed; adding a run to it
    beliefs.py       what is usual: recorded passes become a distribution over the pass rate of a case, a mixture of
                     Betas whose weights are learned from the whole suite; a rate is never taken as known
    suspect_test.py  one suspect: every fresh trial moves a log likelihood ratio, broken against usual; its p-value is
                     the probability that any unchanged suspect ever climbs this high within the trials allowed
    drift_test.py    the suite: if nothing changed, the failures of a case fall on its old and new trials as a shuffle
                     deals them; exact for up to 60 cases, a saddlepoint approximation above
    decision.py      which trials to run next and what they prove; how alpha is spent
    verdict.py       errors, new cases and expired quarantines added: the verdict of the run, and why
    session.py       the gate in a run: finished trials in, requests for further trials out
    power.py         what a gated run costs and what it can detect, by simulation through decision.py
    flakiness.py     cases that both pass and fail

Alpha is the probability of a red build without a regression, 5 % by default. All suspects together get 33 % of it and
each look at the suite 7 %. The rest is kept in reserve for suites that are unlike the model;
`benchmarks/gate_accuracy.py` measures what that gives. Every look and every suspect is paid for, so each p-value can
be compared with alpha as it is.

An error is no outcome: it is never evidence, and a suspect that is known only by errors is an error. What a run
stores is data in `proctor.results.gate_result`. This package imports no engine: the engine runs what is requested,
and `benchmarks/gate_accuracy.py` drives the very class that ships.

Two versions of an agent, run side by side, plug in at three places: a `TrialRequest` names the version (`arm`), and
`CaseTest` and `SuiteTest` are what the decision needs of a test. `docs/gate.md` has the statistics and their
assumptions.
"""
