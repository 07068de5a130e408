"""pixie-qa: the API of 0.4.0 (functions for tests, datasets, traces) and of 0.6.1 (the documented data classes)."""

from __future__ import annotations

from collections.abc import Iterator

from peers_equal.comparison import Comparison, Peer, compare_items
from peers_equal.environments import Environment, prepare

FULL = {"0.4": "0.4.0", "0.6": "0.6.1"}
LISTS = "a list as `eval_input` or `eval_output` in 0.4"
RAISES = "a scorer that raises"
DOCUMENTED = {
    "0.4": {
        "the input of an evaluable without one": "`eval_input` and `eval_output` in 0.4",
        "the keys of a dataset's file": "files of `DatasetStore`",
        "what an observed function stores": "`observe`",
        "AutoevalsAdapter: a scorer that raises": RAISES,
        "ExactMatch: [1, 2] for [1, 2, 3]": LISTS,
        "ExactMatch: [] for []": LISTS,
        "JSONDiff: [1, 2] for [1, 2, 3]": LISTS,
        "JSONDiff: [] for []": LISTS,
    },
    "0.6": {
        "assigning to an evaluable": "assignment to an `Evaluable`",
        "AutoevalsAdapter: a scorer that raises": RAISES,
    },
}


def compare(environment: Environment) -> Iterator[Comparison]:
    later = prepare("pixie-0.6", (f"pixie-qa=={FULL['0.6']}",))
    for version, place in (("0.4", environment), ("0.6", later)):
        original, ours = (
            place.call("pixie_facts.py", {"who": who, "facts": version}) for who in ("original", "proctor")
        )
        yield compare_items(f"facts about pixie {FULL[version]}", original, ours, DOCUMENTED[version])


PEER = Peer("pixie", ("pixie-qa==0.4.0",), compare)
