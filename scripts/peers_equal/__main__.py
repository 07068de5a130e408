"""`python -m peers_equal [NAME...] [--docs]`: compare with the originals and print counts and differences."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from peers_equal import adk, deepeval, holodeck, pixie
from peers_equal.comparison import Comparison, Peer, first_cells
from peers_equal.environments import PeerFailed, prepare

PEERS: dict[str, Peer] = {peer.name: peer for peer in (adk.PEER, pixie.PEER, deepeval.PEER, holodeck.PEER)}

START, END = "<!-- peers-equal -->", "<!-- end of peers-equal -->"


def main() -> int:
    parser = argparse.ArgumentParser(prog="peers_equal", description="Compare Proctor with the installed originals.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(PEERS)}; all by default")
    parser.add_argument("--docs", action="store_true", help="write the counts into the page of each tool")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PEERS]:
        parser.error(f"there is no {unknown[0]!r}; there are {', '.join(PEERS)}")
    return max([compare_with(PEERS[name], options.docs) for name in options.names or PEERS])


def compare_with(peer: Peer, write_docs: bool) -> int:
    """Compare with one original; returns 0 if there is nothing that its page does not explain."""
    try:
        environment = prepare(peer.name, peer.packages, with_proctor=peer.with_proctor)
        distribution = re.split(r"[\[=<>~! ]", peer.packages[0])[0]
        title = f"{distribution} {environment.version(distribution)}"
        print(f"{peer.name}: {title}", flush=True)
        comparisons = []
        for comparison in peer.compare(environment):
            print_comparison(comparison)
            comparisons.append(comparison)
    except PeerFailed as error:
        print(f"{peer.name}: could not be compared: {error}")
        return 1
    problems = list_problems(peer, comparisons)
    for problem in problems:
        print(f"  PROBLEM {problem}")
    print(f"{peer.name}: {'equal except for what its page lists' if not problems else f'{len(problems)} problems'}\n")
    if write_docs:
        write_counts(peer, title, comparisons)
    return 1 if problems else 0


def print_comparison(comparison: Comparison) -> None:
    counts = f"{comparison.count - len(comparison.differences):,} of {comparison.count:,} equal"
    print(f"  {comparison.what}: {counts}, {len(comparison.documented)} documented differences")
    for difference in comparison.differences:
        explained = f"  [{difference.row}]" if difference.row else "  NOT DOCUMENTED"
        print(f"    {difference.name}{explained}")
        print(f"      original {shorten(difference.original)}")
        print(f"      proctor  {shorten(difference.ours)}", flush=True)


def list_problems(peer: Peer, comparisons: Sequence[Comparison]) -> list[str]:
    """What is different and should not be, what should be and is not, and rows that the page does not have."""
    rows = first_cells(peer.page)
    problems = []
    for comparison in comparisons:
        if comparison.unexplained:
            problems.append(f"{comparison.what}: {len(comparison.unexplained)} differences that the page does not list")
        problems += [f"{comparison.what}: {name} is documented as different" for name in comparison.disappeared]
        used = dict.fromkeys(difference.row for difference in comparison.documented)
        problems += [f"docs/{peer.page.name} has no row {row!r}" for row in used if row not in rows]
    return problems


def write_counts(peer: Peer, title: str, comparisons: Sequence[Comparison]) -> None:
    """Write the counts between the two marks of the page."""
    lines = [f"| compared with {title} | inputs | equal | documented differences |", "|---|---|---|---|"]
    for each in comparisons:
        equal = each.count - len(each.differences)
        lines.append(f"| {each.what} | {each.count:,} | {equal:,} | {len(each.documented)} |")
    text = peer.page.read_text(encoding="utf-8")
    if START not in text or END not in text:
        raise SystemExit(f"docs/{peer.page.name} has no lines {START} and {END}")
    before, after = text.split(START)[0], text.split(END, 1)[1]
    peer.page.write_text("\n".join([before + START, *lines, END]) + after, encoding="utf-8")


def shorten(value: Any, limit: int = 200) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= limit else text[: limit - 1] + "…"


if __name__ == "__main__":
    sys.exit(main())
