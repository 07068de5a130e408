"""Prints the comparison of two runs on a terminal, and the two conversations of one case."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.reporting.comparison_report import (
    CHANGE_TITLES,
    RESOURCE_NAMES,
    VERDICT_OUTCOMES,
    amount_text,
    case_name,
    change_text,
    correction_note,
    difference_text,
    group_outcome,
    listed_cases,
    ratio_text,
    run_description,
)
from proctor.reporting.terminal.screen import Screen
from proctor.reporting.wording import STYLES, plural, trial_name
from proctor.results.comparison.alignment import AlignedStep, AlignedTrials, Step
from proctor.results.comparison.comparison import CaseChange, Change, Comparison, p_text
from proctor.results.trial import Trial

MAX_CASES = 20
MAX_TEXT = 400


def print_comparison(comparison: Comparison, screen: Screen, *, verbose: bool = False, quiet: bool = False) -> None:
    """Print the cases by what changed, the most serious first, then scores, resources and the conclusion."""
    arrow = "→" if screen.unicode else "->"
    if not quiet:
        _print_changes(comparison, screen, verbose=verbose, arrow=arrow)
    screen.line((_with_arrow(comparison.sentence, arrow), STYLES[VERDICT_OUTCOMES[comparison.verdict]]))


def _print_changes(comparison: Comparison, screen: Screen, *, verbose: bool, arrow: str) -> None:
    for name, side in (("before", comparison.before), ("after", comparison.after)):
        screen.line((f"{name:<8}", "dim"), run_description(side))
    for group, cases in comparison.groups.items():
        if cases and (verbose or group is not Change.STILL_PASSING):
            _print_group(group, cases, screen, verbose=verbose, arrow=arrow)
    if comparison.evaluators:
        screen.line()
        screen.line(("scores", "bold"))
    width = min(32, max((len(item.evaluator) for item in comparison.evaluators), default=0))
    for item in comparison.evaluators:
        change = f"{item.before:.3f} {arrow} {item.after:.3f}  {difference_text(item)}  {p_text(item.p_value)}"
        screen.line(f"  {item.evaluator:<{width}}  {change}", ("  differs", "bold yellow") if item.differs else "")
    if note := correction_note(comparison.evaluators):
        screen.line((f"  {note}", "dim"), hang=2)
    if comparison.resources:
        screen.line()
        screen.line(("per trial", "bold"))
    for ratio in comparison.resources:
        before, after = amount_text(ratio.resource, ratio.before), amount_text(ratio.resource, ratio.after)
        estimate = " (estimated prices)" if ratio.estimated else ""
        times = "×" if screen.unicode else "x"
        factor = f"{times}{ratio_text(ratio)}{estimate}"
        screen.line(f"  {RESOURCE_NAMES[ratio.resource].lower():<11}  {before} {arrow} {after}  {factor}")
    screen.line()


def _print_group(group: Change, cases: Sequence[CaseChange], screen: Screen, *, verbose: bool, arrow: str) -> None:
    screen.line()
    screen.line((f"{CHANGE_TITLES[group].lower()}: {len(cases):,}", STYLES[group_outcome(group)]))
    shown = cases if verbose else cases[:MAX_CASES]
    width = min(60, max(len(case_name(case)) for case in shown))
    listed = listed_cases(cases)
    for note in listed.notes:
        screen.line((f"  {_with_arrow(_cut(note), arrow)}", "dim"), hang=4)
    for case, lines in listed.rows[: len(shown)]:
        screen.line(f"  {case_name(case):<{width}}  {_with_arrow(change_text(case), arrow)}")
        for line in lines:
            screen.line((f"      {_with_arrow(_cut(line), arrow)}", "dim"), hang=8)
    if len(cases) > len(shown):
        screen.line((f"  and {plural(len(cases) - len(shown), 'more case')} (-v shows all)", "dim"))


def print_case(pair: AlignedTrials, before: str, after: str, screen: Screen) -> None:
    """Print both conversations step by step; a step that is the same in both is printed once."""
    arrow = "→" if screen.unicode else "->"
    for name, run, trial in (("before", before, pair.before), ("after", after, pair.after)):
        screen.line((f"{name:<8}", "dim"), f"{run}  {trial_name(trial.case.id, trial.number)}  ", _outcome(trial))
    turn = 0
    for at, step in enumerate(pair.steps):
        side = step.before or step.after
        if side is not None and side.turn != turn:
            turn = side.turn
            screen.line()
            screen.line((f"turn {turn}", "bold"))
        if pair.divergence is not None and pair.divergence.step == at:
            text = _with_arrow(pair.divergence.text, arrow)
            screen.line((f"  >>> first difference ({pair.divergence.kind}): {text}", "bold red"))
        _print_step(step, screen, arrow)
    screen.line()
    if pair.divergence is None:
        screen.line("no difference between the conversations")


def _outcome(trial: Trial) -> tuple[str, str]:
    return f"{trial.outcome.value}{f': {_cut(trial.end_reason)}' if trial.end_reason else ''}", STYLES[trial.outcome]


def _print_step(step: AlignedStep, screen: Screen, arrow: str) -> None:
    if step.kind is None and step.before is not None:
        screen.line(f"    {_step_text(step.before)}")
        return
    if step.kind == "result":
        if step.before is not None:
            screen.line(f"    {_step_text(step.before)}")
        screen.line((f"      {_with_arrow(step.difference, arrow)}", "yellow"))
        return
    if step.before is not None:
        screen.line((f"  - {_step_text(step.before)}", "red"))
    if step.after is not None:
        screen.line((f"  + {_step_text(step.after)}", "green"))


def _step_text(step: Step) -> str:
    return f"{step.kind}: {_cut(step.text)}"


def _cut(text: str) -> str:
    """The text on one line of at most `MAX_TEXT` characters."""
    line = " ".join(text[: 2 * MAX_TEXT].split())
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 3]}..."


def _with_arrow(text: str, arrow: str) -> str:
    """The text with this arrow; with the ASCII arrow, other special characters become ASCII too."""
    return text if arrow == "→" else text.replace("→", arrow).replace("–", "-").replace("…", "...")
