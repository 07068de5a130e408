"""Measures the rule-based judge as users meet it, and prints the tables of `benchmarks/judge.md`.

    python benchmarks/rule_judge/judge_figures.py FOLDER
    python benchmarks/rule_judge/judge_figures.py FOLDER --margins

FOLDER holds rows that people labelled: `faithfulness.jsonl` (context, answer) and `answer_correctness.jsonl`
(reference, answer). Rows are parted by their ids into a half that the rules were written with and a half that was held
out; so are the families of made rows. An abstention is neither right nor wrong, and lowers the share that is answered.
With `--margins` the first half of the rows with a context is judged with other margins of evidence than the judge has.
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
from made_rows import made_pairs
from minimal_pairs import pairs

from proctor import EvaluationPending, Factuality, Faithfulness, NothingToCompare
from proctor.calibration.labelled_rows import implied_evaluator, read_rows
from proctor.cases.threshold import passes
from proctor.evaluators.registry import resolve_evaluator
from proctor.judging.judges import Judges
from proctor.judging.session import JudgeSession, judge_session

Row = dict[str, Any]
GOOD = ("supported", "correct")
KEEP = ("small talk", "paraphrase")
"""Changes that leave an answer right."""
RIGHT = ("", "as it was", *KEEP)
JUDGES = Judges()


async def verdict(row: Any, evaluator: Any, threshold: float) -> bool | None:
    """What the judge says of a row; `None` where it abstains or there is nothing to judge."""
    with judge_session(JudgeSession(JUDGES, threshold=threshold)):
        try:
            found = await evaluator(row.evaluable)
        except (EvaluationPending, NothingToCompare):
            return None
    return passes(found.score, threshold)


def judged(rows: Iterable[Row], folder: Path) -> list[tuple[Row, bool | None]]:
    """Every row with its verdict, read the way `proctor calibrate` reads a file."""
    rows = list(rows)
    path = folder / "judged.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    read = read_rows(path).rows
    bound = resolve_evaluator(implied_evaluator(read))
    evaluator = Faithfulness() if bound.title == "Faithfulness" else Factuality()
    by_id = {row["id"]: row for row in rows}

    async def all_of_them() -> list[tuple[Row, bool | None]]:
        return [(by_id[row.id], await verdict(row, evaluator, bound.threshold)) for row in read]

    return asyncio.run(all_of_them())


def is_held_out(row: Row) -> bool:
    return int(hashlib.sha256(str(row["id"]).encode()).hexdigest(), 16) % 2 == 1


def tell(title: str, found: list[tuple[Row, bool | None]]) -> None:
    answered = [(row["label"] in GOOD, said) for row, said in found if said is not None]
    right = sum(label == said for label, said in answered)
    sides = [[label == said for label, said in answered if said is side] for side in (True, False)]
    shares = [f"{sum(side) / len(side):.1%} of {len(side)}" if side else "-" for side in sides]
    share = f"{right / len(answered):.1%}" if answered else "-"
    wrongly = sum(said is False for row, said in found if row["label"] in GOOD)
    good = sum(row["label"] in GOOD for row, _ in found)
    refused = f"{wrongly / good:.1%}" if good else "-"
    cells = [title, f"{len(found):,}", f"{len(answered) / len(found):.1%}", share, *shares, refused]
    print("| " + " | ".join(cells) + " |")


def tell_kinds(title: str, found: list[tuple[Row, bool | None]]) -> None:
    kinds: dict[str, list[tuple[Row, bool | None]]] = defaultdict(list)
    for row, said in found:
        if kind := kind_of(row):
            kinds[kind].append((row, said))
    for kind, rows in kinds.items():
        tell(f"{title}: {kind}", rows)


def kind_of(row: Row) -> str:
    """What was changed; empty for the rows before small talk and paraphrases, which are there among the others."""
    if not row["id"].endswith("as-it-was"):
        return str(row["kind"])
    return "" if row["kind"] in KEEP else "as it was"


def tell_totals(half: str, labelled: list[tuple[Row, bool | None]], made: list[tuple[Row, bool | None]]) -> None:
    """All labelled rows together; and of all pairs those that were changed for the worse, and the right ones."""
    tell(f"all labelled rows, {half}", labelled)
    tell(f"all pairs, {half}: changed", [(row, said) for row, said in made if kind_of(row) not in RIGHT])
    for kind in RIGHT[1:]:
        tell(f"all pairs, {half}: {kind}", [(row, said) for row, said in made if kind_of(row) == kind])


def tell_margins(rows: list[Row], folder: Path) -> None:
    """How the margins trade what is answered for what is right; each is moved while the other stays."""
    from proctor.judging.rule_judge import support

    new, own = support.UNMENTIONED_BELOW, support.MAX_OWN_WORDS
    for words in (0, 1, 2, 3, 100):
        support.MAX_OWN_WORDS = (words, own[1])
        tell(f"own words up to {words}", judged(rows, folder))
    support.MAX_OWN_WORDS = own
    for shift in (-0.2, -0.1, 0.0, 0.1, 0.2):
        support.UNMENTIONED_BELOW = tuple((share + shift, least) for share, least in new)
        tell(
            "not said below " + " and ".join(f"{share:.0%}" for share, _ in support.UNMENTIONED_BELOW),
            judged(rows, folder),
        )
    support.UNMENTIONED_BELOW = new


def rows_of(path: Path, *, held_out: bool) -> list[Row]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if is_held_out(row) == held_out]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--margins", action="store_true", help="try other margins on the half that was seen")
    options = parser.parse_args()
    import tempfile

    print("| rows | count | answered | right | of those passed | of those failed | good ones failed |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        if options.margins:
            tell_margins(rows_of(options.folder / "faithfulness.jsonl", held_out=False), Path(temporary))
            return
        for held_out, half in ((False, "seen"), (True, "held out")):
            labelled, changed = [], []
            for name, file in (("BEGIN", "faithfulness"), ("EVOUNA", "answer_correctness")):
                rows = rows_of(options.folder / f"{file}.jsonl", held_out=held_out)
                labelled += (found := judged(rows, Path(temporary)))
                tell(f"{name}, {half}", found)
                changed += (found := judged(pairs(rows, options.seed), Path(temporary)))
                tell_kinds(f"{name} pairs, {half}", found)
            changed += (found := judged(made_pairs(400, options.seed, held_out=held_out), Path(temporary)))
            tell_kinds(f"made, {half}", found)
            tell_totals(half, labelled, changed)


if __name__ == "__main__":
    main()
