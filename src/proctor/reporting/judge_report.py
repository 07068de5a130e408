"""The calls of judges and simulated users: prompts, replies, number and cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from proctor.base.json_data import Json, to_json, to_text
from proctor.base.masking import mask, mask_data
from proctor.judging.judge import is_rule_based
from proctor.reporting.explain import FULL, Fact
from proctor.reporting.terminal.facts import print_facts
from proctor.reporting.terminal.screen import Screen
from proctor.reporting.wording import LABELS, STYLES, money, plural, rate_text, trial_name
from proctor.results.judge_calibration import (
    Correction,
    StaleCalibration,
    review_calibrations,
    uncalibrated_judges,
)
from proctor.results.judge_usage import JudgeSummary, judge_calls, judge_details, judge_name, simulated_user_details
from proctor.results.reasons import score_value
from proctor.results.run import Run
from proctor.results.score import Score
from proctor.results.trial import Trial

FindJudgeCall = Callable[[str], Mapping[str, Json] | None]
"""Returns the stored prompts and reply of a call, by its key."""

CALL_TEXTS = ("system", "user", "reply", "unfit")
MAX_NAMED_SCORES = 5
"""Maximum scores near their threshold that are named; the JSON report has all."""
STEPS_KIND = "geval-steps"
"""The kind of question that asks a judge to write its own evaluation steps."""


def judged_scores(trials: Iterable[Trial], find: FindJudgeCall) -> Iterator[dict[str, Json]]:
    """Every judged score as JSON, with the prompts and replies of its calls, in which secrets are masked."""
    for trial in trials:
        for score in trial.scores:
            if judge_details(score) is not None:
                yield _score_data(trial, score, find)


def simulated_users(trials: Iterable[Trial], find: FindJudgeCall) -> Iterator[dict[str, Json]]:
    """Every simulated user as JSON, with the prompts and replies of its calls."""
    for trial in trials:
        if simulated_user_details(trial) is not None:
            yield _user_data(trial, find)


def print_judge_calls(screen: Screen, trials: Iterable[Trial], find: FindJudgeCall, *, verbose: bool) -> int:
    """Print the calls behind simulated users and judged scores, with full prompts if `verbose`; return how many."""
    count = 0
    for trial in trials:
        for user in simulated_users([trial], find):
            name = f"{trial.suite}/{trial_name(trial.case.id, trial.number)}"
            title = f"{name}  simulated user by {user['model']}"
            screen.line((f"{LABELS[trial.outcome]:<5}  ", STYLES[trial.outcome]), title)
            print_facts(screen, list(_user_facts(user, verbose)), FULL)
            screen.line()
            count += 1
        for score in trial.scores:
            if judge_details(score) is None:
                continue
            data = _score_data(trial, score, find)
            turn = "" if score.turn is None else f" at turn {score.turn + 1}"
            name = f"{trial.suite}/{trial_name(trial.case.id, trial.number)}"
            text = f"{score.evaluator} {score_value(score)}{turn}"
            screen.line((f"{LABELS[score.outcome]:<5}  ", STYLES[score.outcome]), f"{name}  {text}")
            print_facts(screen, list(_score_facts(data, verbose)), FULL)
            screen.line()
            count += 1
    return count


def _user_data(trial: Trial, find: FindJudgeCall) -> dict[str, Json]:
    account: Mapping[str, Json] = simulated_user_details(trial) or {}
    return {
        "suite": trial.suite,
        "case": trial.case.id,
        "number": trial.number,
        "model": account["model"],
        "ended": mask(str(account.get("ended") or trial.end_reason)),
        "usage": to_json(account.get("usage") or {}),
        "calls": [_call_data(call, find) for call in judge_calls(account)],
    }


def _user_facts(user: Mapping[str, Json], verbose: bool) -> Iterator[Fact]:
    if cost := _cost_text(user["usage"]):
        yield Fact("cost", cost)
    if user["ended"]:
        yield Fact("ended", user["ended"])
    yield from _call_facts(user["calls"], verbose)


def _score_data(trial: Trial, score: Score, find: FindJudgeCall) -> dict[str, Json]:
    account: Mapping[str, Json] = judge_details(score) or {}
    return {
        "suite": trial.suite,
        "case": trial.case.id,
        "number": trial.number,
        "evaluator": score.evaluator,
        "turn": score.turn,
        "outcome": score.outcome.value,
        "value": score.value,
        "threshold": score.threshold,
        "reasoning": mask(score.reasoning),
        "model": account["model"],
        "usage": to_json(account.get("usage") or {}),
        "votes": mask_data(account.get("votes") or []),
        "calls": [_call_data(call, find) for call in judge_calls(account)],
        **({"unfit_reply": mask_data(account["unfit_reply"])} if "unfit_reply" in account else {}),
    }


def _call_data(call: Mapping[str, Json], find: FindJudgeCall) -> dict[str, Json]:
    key = call.get("key")
    stored = find(key) if isinstance(key, str) else None
    texts = {name: mask_data(stored[name]) for name in CALL_TEXTS if name in stored} if stored is not None else {}
    usage = {"usage": to_json(stored["usage"])} if stored is not None and "usage" in stored else {}
    return {**to_json(call), **usage, **texts}


def _score_facts(data: Mapping[str, Json], verbose: bool) -> Iterator[Fact]:
    cost = "" if is_rule_based(data["model"]) else _cost_text(data["usage"])
    yield Fact("judge", data["model"] + (f"; {cost}" if cost else ""))
    if data["reasoning"]:
        yield Fact("reason", data["reasoning"])
    for vote in data["votes"]:
        yield Fact("vote", _vote_text(vote))
    yield from _call_facts(data["calls"], verbose)
    if verbose and "unfit_reply" in data:
        yield Fact("invalid reply", data["unfit_reply"])


def _call_facts(calls: Iterable[Mapping[str, Json]], verbose: bool) -> Iterator[Fact]:
    for call in calls:
        yield Fact("call", _call_title(call))
        if verbose:
            yield from _call_texts(call)


def _vote_text(vote: Json) -> str:
    if not isinstance(vote, Mapping):
        return to_text(vote)
    who = f"{vote.get('judge', '')} (sample {_sample_number(vote)})"
    if vote.get("abstained"):
        return f"{who} abstained: {vote['abstained']}"
    reason = f": {vote['reasoning']}" if vote.get("reasoning") else ""
    return f"{who} {to_text(vote.get('score'))}{reason}"


def _call_title(call: Mapping[str, Json]) -> str:
    parts = [f"{call.get('kind')} v{call.get('version')} by {call.get('model')}"]
    if call.get("sample"):
        parts.append(f"sample {_sample_number(call)}")
    if call.get("repaired"):
        parts.append("first reply rejected")
    if isinstance(call.get("cut_off"), int):
        parts.append(f"{plural(call['cut_off'], 'request')} abandoned without an answer")
    if not is_rule_based(call.get("model")):
        parts.append("from cache" if call.get("cached") else _cost_text(call.get("usage") or {}) or "cost unknown")
    return ", ".join(parts)


def _sample_number(item: Mapping[str, Json]) -> int:
    sample = item.get("sample")
    return sample + 1 if isinstance(sample, int) else 1


def _call_texts(call: Mapping[str, Json]) -> Iterator[Fact]:
    if not any(name in call for name in CALL_TEXTS):
        yield Fact("", "(the prompts of this call are not in this store)")
        return
    for name in CALL_TEXTS:
        if name in call:
            yield Fact(f"  {name}", to_text(call[name]))


def _cost_text(usage: Mapping[str, Json]) -> str:
    tokens = [usage[name] for name in ("input_tokens", "output_tokens") if isinstance(usage.get(name), int)]
    parts = [plural(sum(tokens), "token")] if tokens else []
    if isinstance(usage.get("cost_usd"), (int, float)):
        parts.append(money(usage["cost_usd"]))
    return ", ".join(parts)


def judge_lines(run: Run) -> list[tuple[str, str]]:
    """Each judge of a run with what it did, and whether it was calibrated."""
    missing = uncalibrated_judges(run, review_calibrations(run).corrections)
    return [(judge.model, judge_text(judge) + _uncalibrated_text(missing.get(judge.model))) for judge in run.judges]


def _uncalibrated_text(evaluators: Sequence[str] | None) -> str:
    if evaluators is None:
        return ""
    return "; not calibrated" + (f" for {', '.join(evaluators)}" if evaluators else "")


def judge_caveats(run: Run) -> list[tuple[str, str]]:
    """What to know before trusting judged scores, as pairs of title and text.

    Corrected pass rates, stale calibrations, scores near their threshold, and the evaluation steps that a judge wrote
    for itself, since every score of that evaluator depends on them.
    """
    review = review_calibrations(run)
    lines = [("Corrected pass rate", correction_text(item)) for item in review.corrections]
    lines += [("Stale calibration", stale_text(item)) for item in review.stale]
    lines += [("Near the threshold", near_text(item)) for item in review.corrections if item.near]
    return lines + [("Steps", text) for text in _steps_texts(run)]


def stale_text(item: StaleCalibration) -> str:
    """Which calibration is not used, what changed, and the command that makes a new one."""
    return (
        f"the calibration of {item.judge} for {item.evaluator} from {_day(item.measured_at)} is not used, so its pass "
        f"rate is not corrected: {mask(item.reason)}. Calibrate again: {mask(item.command)}"
    )


def _day(moment: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(moment))


def near_text(item: Correction) -> str:
    """The scores whose outcome may change if the judge is asked again."""
    names = [
        f"{each.suite}/{trial_name(each.case, each.number)}{'' if each.turn is None else f' at turn {each.turn + 1}'} "
        f"{each.value:.2f}"
        for each in item.near[:MAX_NAMED_SCORES]
    ]
    more = f" and {len(item.near) - MAX_NAMED_SCORES:,} more" if len(item.near) > MAX_NAMED_SCORES else ""
    count = plural(len(item.near), "score")
    return (
        f"{count} of {item.evaluator} within {item.noise:.2f} of the threshold {item.threshold:g}, the noise of "
        f"{item.judge} between two calls: {', '.join(names)}{more}"
    )


def _steps_texts(run: Run) -> list[str]:
    """The evaluation steps of each evaluator for which the judge wrote them, once per evaluator."""
    if not any(judge.calls or judge.cached for judge in run.judges):
        return []
    texts: dict[str, str] = {}
    for trial in run.trials:
        for score in trial.scores:
            steps = score.details.get("steps") if score.evaluator not in texts else None
            if isinstance(steps, list) and any(
                call.get("kind") == STEPS_KIND for call in judge_calls(judge_details(score) or {})
            ):
                numbered = " ".join(f"{number}. {to_text(step, 200)}" for number, step in enumerate(steps, 1))
                texts[score.evaluator] = f"{score.evaluator} by {judge_name(score)}: {mask(numbered)}"
    return list(texts.values())


def correction_text(item: Correction) -> str:
    """The observed pass rate, and the pass rate corrected for the judge's known mistakes."""
    observed = f"{item.evaluator} at threshold {item.threshold:g} passed {rate_text(item.observed)}"
    source = f"the agreement of {item.judge} with people on {plural(item.rows, 'row')}"
    rate = item.corrected
    if rate.value is None:
        return f"{observed}; cannot be corrected by {source}: {rate.reason}{_measured_text(item)}"
    return (
        f"{observed}; corrected by {source}: {rate.value:.1%} [{rate.low:.1%}, {rate.high:.1%}]{_measured_text(item)}"
    )


def _measured_text(item: Correction) -> str:
    """How often the judge agreed with people, when that was measured, and how often it contradicted itself."""
    rates = (("true-positive", item.true_positive_rate), ("true-negative", item.true_negative_rate))
    parts = [f"{name} rate {'unknown' if rate is None else rate}" for name, rate in rates]
    if item.retested:
        parts.append(f"{item.flipped:,} of {plural(item.retested, 'score')} flipped when judged again")
    return f" (calibrated {_day(item.measured_at)}: {', '.join(parts)})"


def judge_text(judge: JudgeSummary) -> str:
    """`12 calls (30 from cache), 15,210 tokens, $0.0040`; for a judge without a model only the number of scores."""
    abstained = f", abstained from {judge.abstained:,}" if judge.abstained else ""
    if not judge.calls and not judge.cached and not judge.shared:
        return f"{plural(judge.scores, 'score')}{abstained}"
    free = [f"{judge.cached:,} from cache"] if judge.cached else []
    free += [f"{judge.shared:,} shared"] if judge.shared else []
    parts = [plural(judge.calls, "call") + (f" ({', '.join(free)})" if free else "")]
    if judge.tokens:
        parts.append(plural(judge.tokens, "token"))
    if judge.cost_usd is not None and judge.unpriced:
        parts.append(f"{money(judge.cost_usd)} and {plural(judge.unpriced, 'call')} of unknown cost")
    elif judge.cost_usd is not None:
        parts.append(money(judge.cost_usd))
    elif judge.calls:
        parts.append("cost unknown")
    if judge.abandoned_requests:
        sent = f"about {plural(judge.abandoned_tokens, 'token')} sent and not counted"
        parts.append(f"{plural(judge.abandoned_requests, 'request')} abandoned without an answer ({sent})")
    return ", ".join(parts) + abstained
