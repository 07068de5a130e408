"""`proctor approve SUITE`: a person reviews what the agent did, and approved outputs become the expectations."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from proctor.base.errors import InvalidSuite, UsageError
from proctor.base.json_data import to_text
from proctor.base.source import YAML_SUFFIXES, ending
from proctor.cases.formats import JSON_LINES, format_named
from proctor.cases.formats.loading import load
from proctor.cases.formats.native.editing import CannotEdit
from proctor.cases.formats.native.reader import NOTHING_TO_CHECK
from proctor.cases.relocate import relocate
from proctor.cases.suite import NO_EXPECTATION, Suite
from proctor.cli import suggestions
from proctor.cli.grade import MAX_TEXT, QUIT, facts_text, is_interactive, prompt, read_rows, reviewer_name
from proctor.cli.help_pages import OUTPUT, DocumentedCommand, option
from proctor.cli.options import command_configuration, json_option, store_option
from proctor.cli.output import reserve_stdout, say, say_json
from proctor.cli.selection import CaseSelection, case_selection
from proctor.cli.suite_files import check_ending, format_for, read_bytes, write_file, write_suites
from proctor.plugins import load as load_target
from proctor.reporting.explain import Fact, call_text, expected_lines, value_text
from proctor.reporting.terminal.screen import escape_line
from proctor.reporting.wording import plural
from proctor.results.masking import mask_case
from proctor.running.review.approving import (
    ApprovalProposal,
    from_run,
    proposals,
    read_approvals,
    run_unscored,
    with_expectations,
    without_unchecked_cases,
)
from proctor.running.review.grading import BadGrade
from proctor.running.selection import CaseFilter
from proctor.running.settings import RunOptions

Accepted = dict[str, tuple[ApprovalProposal, str]]


ANSWERS, APPROVAL = "Answers", "Approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveOptions:
    """The options of the command, by name."""

    agent: str | None
    run_id: str | None
    expect: str
    decisions: str | None
    accept_all: bool
    by: str | None
    output: Path | None
    force: bool
    as_json: bool
    store: str | None


@click.command(
    "approve",
    cls=DocumentedCommand,
    examples=("proctor approve suite.yaml", "proctor approve suite.yaml::refund --run last --expect tools"),
)
@click.argument("source", metavar="SUITE", shell_complete=suggestions.paths)
@case_selection(verb="Approve")
@option(
    "--agent",
    group=ANSWERS,
    metavar="REF",
    help="Ask this agent instead of the one the suite names: file.py:name, a URL or cmd:COMMAND.",
)
@option(
    "--run",
    "run_id",
    group=ANSWERS,
    metavar="RUN",
    shell_complete=suggestions.runs,
    help="Take the answers of a stored run instead of asking the agent.",
)
@option(
    "--expect",
    group=ANSWERS,
    type=click.Choice(("both", "answer", "tools")),
    default="both",
    help="What to save: the answer, the tool calls, or both (default: both).",
)
@option(
    "--from",
    "decisions",
    group=APPROVAL,
    metavar="FILE",
    help="Read the decisions from a file: the rows of --json, filled in.",
)
@option("--accept-all", group=APPROVAL, is_flag=True, help="Approve everything without review.")
@option("--by", group=APPROVAL, metavar="NAME", help="Who approves (default: your user name).")
@store_option
@option(
    "--output",
    group=OUTPUT,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write to this file instead of editing SUITE.",
)
@option("--force", group=OUTPUT, is_flag=True, help="Overwrite the --output file if it exists.")
@json_option
def command(source: str, selection: CaseSelection, **values: Any) -> int:
    """Run the cases of SUITE, show what the agent did, and save what you approve as the expectations.

    On a terminal, you decide case by case. Elsewhere the cases are only shown, unless --from or --accept-all decides.
    Approved cases are edited in SUITE itself, and all other lines stay as they are. A suite in the format of another
    tool is written to SUITE.recorded.yaml. --json prints the rows that --from reads.
    """
    options = ApproveOptions(**values)
    _check(options)
    (file, *_), selection = selection.with_paths([source])
    with reserve_stdout(options.as_json):
        suite = _suite(file)
        select = selection.case_filter([suite]) or CaseFilter()
        target = _target(suite, options.output, options.force) if not options.as_json else Path()
        before = read_bytes(suite.path)
        offered = _collect_proposals(suite, select, options)
    if options.as_json:
        say_json("proposal-row", [proposal.row() for proposal in offered])
        return 0
    if not any(not proposal.refusal for proposal in offered):
        _print_proposals(offered)
        say("error: no case has an answer to approve", err=True)
        return 4
    accepted = _collect_approvals(offered, options)
    return 0 if accepted is None else _write(suite, accepted, target, options.expect, before)


def _check(options: ApproveOptions) -> None:
    ways = [f"--{name}" for name, key in (("from", "decisions"), ("accept-all", "accept_all")) if getattr(options, key)]
    ways += ["--json"] if options.as_json else []
    if len(ways) > 1:
        raise UsageError(f"{' and '.join(ways)} cannot be combined")
    if options.run_id is not None and options.agent is not None:
        raise UsageError("--run uses stored answers and --agent runs an agent; use one of them")


def _suite(source: str) -> Suite:
    suites = _load_suites(source)
    if len(suites) != 1:
        raise UsageError(f"{source} has {len(suites)} suites; name the file of one")
    for warning in suites[0].warnings:
        say(f"warning: {warning}", err=True)
    return suites[0]


def _load_suites(source: str) -> list[Suite]:
    """The suites of a file. Cases without expectations are allowed here: approving adds them."""
    try:
        return load([source])
    except InvalidSuite as error:
        if not error.partial_suites or any(problem.message != NOTHING_TO_CHECK for problem in error.problems):
            raise
        return list(error.partial_suites)


def _target(suite: Suite, output: Path | None, force: bool) -> Path:
    """The file to write, checked before the person is asked anything."""
    path = suite.path or Path("suite.yaml")
    if output is None and suite.path is not None and _editor(suite.format) is not None:
        return path
    target = output or path.with_name(f"{path.name.partition('.')[0] or path.stem}.recorded.yaml")
    check_ending(format_for(target), target)
    if target.exists() and not force:
        raise UsageError(f"{target} exists; add --force to overwrite it, or name another file with --output")
    return target


def _collect_proposals(suite: Suite, select: CaseFilter, options: ApproveOptions) -> list[ApprovalProposal]:
    configuration = command_configuration()
    folder = configuration.store(options.store)
    if options.run_id is not None:
        answers = from_run(folder, options.run_id, suite.name)
    else:
        how = RunOptions(
            defaults=configuration.settings,
            default_agent=configuration.agent,
            keep_secrets=configuration.values.get("keep_secrets", False),
        )
        answers = run_unscored(suite, how, options.agent, select, folder)
    run_id, agent, trials = answers
    offered = proposals(suite, trials, run_id, agent, select)
    if not offered:
        raise UsageError("no case is selected")
    return offered


def _collect_approvals(offered: Sequence[ApprovalProposal], options: ApproveOptions) -> Accepted | None:
    """The approved cases and who approved them; `None` if there is nobody to ask."""
    who = reviewer_name(options.by)
    if options.decisions is not None:
        return read_approvals(read_rows(options.decisions), offered, who)
    if options.accept_all:
        _print_proposals(offered)
        fit = [proposal for proposal in offered if not proposal.refusal]
        many = plural(len(fit), "case")
        say(f"WARNING: {many} approved without review; wrong outputs are expected from now on", err=True)
        return {proposal.case.id: (proposal, f"{who} (--accept-all)") for proposal in fit}
    if not is_interactive():
        _print_proposals(offered)
        say("nothing was written; approve on a terminal, with --from FILE, or with --accept-all")
        return None
    return _ask_all(offered, who)


def _ask_all(offered: Sequence[ApprovalProposal], who: str) -> Accepted:
    say("y approves what the agent did, n or Enter leaves the case unchanged, q quits.\n")
    accepted: Accepted = {}
    for number, proposal in enumerate(offered, 1):
        say(f"{number} of {len(offered)}  {_proposal_text(proposal)}")
        if proposal.refusal:
            say("")
            continue
        answer = prompt("approve? [y/n/q] ", _yes_or_no)
        if answer is QUIT:
            break
        if answer:
            accepted[proposal.case.id] = proposal, who
        say("")
    return accepted


def _yes_or_no(text: str) -> bool:
    word = text.lower()
    if word not in ("y", "yes", "n", "no"):
        raise BadGrade("y, n or q")
    return word in ("y", "yes")


def _write(suite: Suite, accepted: Accepted, target: Path, part: Any, before: bytes | None) -> int:
    if not accepted:
        say("nothing was approved, so nothing was written")
        return 0
    changed = with_expectations(suite, accepted, part)
    whole, unexpected = without_unchecked_cases(changed)
    if _is_editable(suite, target) and before is not None:
        _edit(suite, changed, accepted, target, before)
        unchanged = len(suite.cases) - len(accepted)
        note = "has no expectation yet"
    else:
        _convert(whole, target)
        unchanged = len(whole.cases) - len(accepted)
        note = "not written, because it has no expectation yet"
    for case in unexpected:
        say(f"{escape_line(case)}: {note}", err=True)
    rest = f", {plural(unchanged, 'case')} unchanged" if unchanged else ""
    say(f"wrote {target} ({plural(len(accepted), 'case')} approved{rest})")
    return 0


def _is_editable(suite: Suite, target: Path) -> bool:
    """Whether the target can be an edited copy of the suite: same format and same folder, for its relative paths."""
    path = suite.path
    if path is None or _editor(suite.format) is None or _editor(suite.format) != _editor(format_for(target)):
        return False
    alike = any(ending(path) in kind and ending(target) in kind for kind in (YAML_SUFFIXES, JSON_LINES, (".json",)))
    return alike and path.resolve().parent == target.resolve().parent


def _editor(name: str) -> Callable[..., str] | None:
    """The function that edits suites of this format in place, if there is one."""
    suite_format = format_named(name)
    return None if suite_format is None or suite_format.edit is None else load_target(suite_format.edit)


def _edit(suite: Suite, changed: Suite, accepted: Accepted, target: Path, before: bytes) -> None:
    """Edit the approved cases in the text of the suite."""
    path, edit = Path(str(suite.path)), _editor(suite.format)
    assert edit is not None
    if read_bytes(path) != before:
        raise UsageError(f"{path} changed in the meantime, so nothing was written; approve again")
    bom = codecs.BOM_UTF8 if before.startswith(codecs.BOM_UTF8) else b""
    cases = {index: case for index, case in enumerate(changed.cases) if case.id in accepted}
    try:
        text = edit(path, before.decode("utf-8-sig"), suite, cases)
    except CannotEdit as error:
        raise UsageError(f"{path} cannot be edited: {error}; name another file with --output") from None
    write_file(target, bom + text.encode())


def _convert(whole: Suite, target: Path) -> None:
    """Write the whole suite, in the format that the target's name implies."""
    written = write_suites([relocate(whole, target.parent)], format_for(target), target)
    write_file(target, written.text)
    for loss in written.losses:
        say(f"not expressed: {loss}", err=True)


def _print_proposals(offered: Sequence[ApprovalProposal]) -> None:
    for proposal in offered:
        say(f"{_proposal_text(proposal)}\n")


def _proposal_text(proposal: ApprovalProposal) -> str:
    """The case, which of several trials is shown, the current expectation, and what the agent did, turn by turn."""
    case, trial = mask_case(proposal.case), proposal.trial
    facts: list[Fact] = [Fact("  shown", proposal.chosen)] if "," in proposal.chosen else []
    for turn, reply in itertools.zip_longest(case.turns, () if trial is None else trial.replies[: len(case.turns)]):
        facts.append(Fact("  input", value_text(turn.input)))
        if turn.expected != NO_EXPECTATION:
            facts.append(Fact("  expected now", "\n".join(expected_lines(turn.expected, MAX_TEXT))))
        if reply is None or reply.error is not None:
            break
        facts.append(Fact("  answer", to_text(reply.answer) or "(an empty answer)"))
        calls = "\n".join(call_text(call, MAX_TEXT) for call in reply.tool_calls)
        facts.append(Fact("  calls", calls or "none"))
    if proposal.refusal:
        facts.append(Fact("  not possible", proposal.refusal))
    return f"{escape_line(case.id)}\n{facts_text(facts)}"
