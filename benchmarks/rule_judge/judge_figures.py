"""Measures the rule-based judge on labelled rows, and prints the tables of `benchmarks/judge.md`.

    python benchmarks/rule_judge/judge_figures.py FOLDER
    python benchmarks/rule_judge/judge_figures.py FOLDER --margins

FOLDER has rows that people labelled: `faithfulness.jsonl` (context, answer) and `answer_correctness.jsonl` (reference,
answer). Rows are split by their ids into a half that the rules were written with and a half that was held out, and so
are the families of generated rows. An abstention is neither right nor wrong, and lowers the share that is answered.
With `--margins` the first half of the rows with a context is judged with other margins of evidence.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from generated_rows import generated_pairs
from minimal_pairs import pairs

from proctor import EvaluationPending, Factuality, Faithfulness, NothingToCompare
from proctor.calibration.labelled_rows import implied_evaluator, read_rows
from proctor.cases.threshold import passes
from proctor.evaluators.registry import resolve_evaluator
from proctor.judging.judges import Judges
from proctor.judging.session import JudgeSession, judge_session

Row = dict[str, Any]
GOOD_LABELS = ("supported", "correct")
HARMLESS_CHANGES = ("small talk", "paraphrase")
"""Changes after which an answer is still right."""
CORRECT_KINDS = ("", "as it was", *HARMLESS_CHANGES)
JUDGES = Judges()


async def judge_row(row: Any, evaluator: Any, threshold: float) -> bool | None:
    """Whether a row passes; `None` if the judge abstains or there is nothing to judge."""
    with judge_session(JudgeSession(JUDGES, threshold=threshold)):
        try:
            evaluation = await evaluator(row.evaluable)
        except (EvaluationPending, NothingToCompare):
            return None
    return passes(evaluation.score, threshold)


def judge_rows(rows: Iterable[Row], folder: Path) -> list[tuple[Row, bool | None]]:
    """Every row with its verdict, read the way `proctor calibrate` reads a file."""
    rows = list(rows)
    path = folder / "judged.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    read = read_rows(path).rows
    bound = resolve_evaluator(implied_evaluator(read))
    evaluator = Faithfulness() if bound.title == "Faithfulness" else Factuality()
    by_id = {row["id"]: row for row in rows}

    async def judge_all() -> list[tuple[Row, bool | None]]:
        return [(by_id[row.id], await judge_row(row, evaluator, bound.threshold)) for row in read]

    return asyncio.run(judge_all())


def is_held_out(row: Row) -> bool:
    return int(hashlib.sha256(str(row["id"]).encode()).hexdigest(), 16) % 2 == 1


def print_row(title: str, results: list[tuple[Row, bool | None]]) -> None:
    answered = [(row["label"] in GOOD_LABELS, passed) for row, passed in results if passed is not None]
    right = sum(label == passed for label, passed in answered)
    sides = [[label == passed for label, passed in answered if passed is side] for side in (True, False)]
    shares = [f"{sum(side) / len(side):.1%} of {len(side)}" if side else "-" for side in sides]
    share = f"{right / len(answered):.1%}" if answered else "-"
    wrongly = sum(passed is False for row, passed in results if row["label"] in GOOD_LABELS)
    good = sum(row["label"] in GOOD_LABELS for row, _ in results)
    refused = f"{wrongly / good:.1%}" if good else "-"
    cells = [title, f"{len(results):,}", f"{len(answered) / len(results):.1%}", share, *shares, refused]
    print("| " + " | ".join(cells) + " |")


def print_kinds(title: str, results: list[tuple[Row, bool | None]]) -> None:
    kinds: dict[str, list[tuple[Row, bool | None]]] = defaultdict(list)
    for row, passed in results:
        if kind := change_kind(row):
            kinds[kind].append((row, passed))
    for kind, rows in kinds.items():
        print_row(f"{title}: {kind}", rows)


def change_kind(row: Row) -> str:
    """The kind of change; empty for the originals of small talk and paraphrases, which other pairs have, too."""
    if not row["id"].endswith("as-it-was"):
        return str(row["kind"])
    return "" if row["kind"] in HARMLESS_CHANGES else "as it was"


def print_totals(half: str, labelled: list[tuple[Row, bool | None]], pairs: list[tuple[Row, bool | None]]) -> None:
    """Print a row for all labelled rows, one for all wrong answers, and one for each kind of right answer."""
    print_row(f"all labelled rows, {half}", labelled)
    changed = [(row, passed) for row, passed in pairs if change_kind(row) not in CORRECT_KINDS]
    print_row(f"all pairs, {half}: changed", changed)
    for kind in CORRECT_KINDS[1:]:
        print_row(f"all pairs, {half}: {kind}", [(row, passed) for row, passed in pairs if change_kind(row) == kind])


def print_margins(rows: list[Row], folder: Path) -> None:
    """Print how each margin affects the shares answered and right, with the other margin unchanged."""
    from proctor.judging.rule_judge import support

    new, own = support.UNMENTIONED_BELOW, support.MAX_OWN_WORDS
    for words in (0, 1, 2, 3, 100):
        support.MAX_OWN_WORDS = (words, own[1])
        print_row(f"own words up to {words}", judge_rows(rows, folder))
    support.MAX_OWN_WORDS = own
    for shift in (-0.2, -0.1, 0.0, 0.1, 0.2):
        support.UNMENTIONED_BELOW = tuple((share + shift, least) for share, least in new)
        print_row(
            "not said below " + " and ".join(f"{share:.0%}" for share, _ in support.UNMENTIONED_BELOW),
            judge_rows(rows, folder),
        )
    support.UNMENTIONED_BELOW = new


def read_half(path: Path, *, held_out: bool) -> list[Row]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if is_held_out(row) == held_out]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--margins", action="store_true", help="try other margins on the half that was not held out")
    options = parser.parse_args()
    import tempfile

    print("| rows | count | answered | right | of those passed | of those failed | good ones failed |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        if options.margins:
            print_margins(read_half(options.folder / "faithfulness.jsonl", held_out=False), Path(temporary))
            return
        for held_out, half in ((False, "seen"), (True, "held out")):
            labelled, changed = [], []
            for name, file in (("BEGIN", "faithfulness"), ("EVOUNA", "answer_correctness")):
                rows = read_half(options.folder / f"{file}.jsonl", held_out=held_out)
                labelled += (results := judge_rows(rows, Path(temporary)))
                print_row(f"{name}, {half}", results)
                changed += (results := judge_rows(pairs(rows, options.seed), Path(temporary)))
                print_kinds(f"{name} pairs, {half}", results)
            changed += (results := judge_rows(generated_pairs(400, options.seed, held_out=held_out), Path(temporary)))
            print_kinds(f"generated, {half}", results)
            print_totals(half, labelled, changed)


if __name__ == "__main__":
    main()
