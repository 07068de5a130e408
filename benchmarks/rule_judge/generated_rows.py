# ruff: noqa: E501  the sentences are easier to compare on one line
"""Generates rows with random values: a context, a right answer, and one with swapped values or roles, or an opposite.

Half of the families are held out: the rules of the judge were written without them, except that one paraphrase (of
falling unemployment) led to two rules after a failing test.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]

PEOPLE = "Amira Bjorn Chandra Delphine Esteban Farid Greta Hiroshi Ingrid Joaquin Katya Leopold Marisol Nadia".split()
FIRMS = "Acme Borealis Contoso Dynacorp Elmwood Fabrikam Globex Hooli Initech Jupiterworks Kestrel Lumina".split()
CITIES = "Oslo Bergen Turin Porto Ghent Leeds Cork Basel Graz Lyon Malaga Utrecht".split()
PRODUCTS = "lamp chair desk kettle mirror heater carpet drill ladder blender".split()
TEAMS = "Falcons Rovers Pirates Comets Titans Badgers Wolves Harriers".split()

Family = tuple[str, bool, str, str, str]
"""Kind, whether it is held out, and templates for the context, the right answer, and the wrong or paraphrased one."""

FAMILIES: tuple[Family, ...] = (
    ("swap", False, '{{"monthly_payment": {n1}, "total_interest": {n2}}}',
     "The monthly payment is ${n1} and the total interest is ${n2}.",
     "The monthly payment is ${n2} and the total interest is ${n1}."),
    ("swap", False, "The Basic plan costs ${n1} and the Premium plan costs ${n2}.",
     "The Basic plan costs ${n1}, while the Premium plan costs ${n2}.", "The Premium plan costs ${n1}."),
    ("swap", False, "| City | Population | Schools |\n|---|---|---|\n| {c1} | {n1} | {s1} |\n| {c2} | {n2} | {s2} |",
     "{c1} has a population of {n1}.", "{c1} has a population of {n2}."),
    ("swap", False, "Check-in: {h1} pm\nCheck-out: {h2} am\nBreakfast: 7 am",
     "Check-in is at {h1} pm and check-out is at {h2} am.", "Check-in is at {h2} am and check-out is at {h1} pm."),
    ("swap", False, '[{{"product": "{p1}", "price": {n1}, "stock": {s1}}}, {{"product": "{p2}", "price": {n2}, "stock": {s2}}}]',
     "The {p1} costs ${n1} and the {p2} costs ${n2}.", "The {p1} costs ${n2} and the {p2} costs ${n1}."),
    ("swap", False, "{f1} was founded in {y1} and {f2} in {y2}.",
     "{f1} was founded in {y1}.", "{f2} was founded in {y1}."),
    ("swap", True, '{{"north": {{"sales": {n1}, "returns": {s1}}}, "south": {{"sales": {n2}, "returns": {s2}}}}}',
     "Sales in the north were {n1}, in the south {n2}.", "Sales in the north were {n2}, in the south {n1}."),
    ("swap", True, "The ferry to {c1} takes {s1} hours; the ferry to {c2} takes {s2} hours.",
     "It takes {s1} hours by ferry to {c1}.", "It takes {s2} hours by ferry to {c1}."),
    ("swap", True, "{a1} manages the finance team. {a2} manages the design team.",
     "{a1} manages the finance team.", "{a2} manages the finance team."),
    ("swap", True, "Deposit: ${n1}\nMonthly rent: ${n2}\nCity: {c1}",
     "The deposit is ${n1} and the monthly rent is ${n2}.", "The deposit is ${n2} and the monthly rent is ${n1}."),
    ("swap", True, "In {y1} revenue was ${n1} million; in {y2} it was ${n2} million.",
     "Revenue was ${n1} million in {y1}.", "Revenue was ${n2} million in {y1}."),
    ("swap", True, "| Model | Weight | Range |\n|---|---|---|\n| {f1} | {s1} kg | {n1} km |\n| {f2} | {s2} kg | {n2} km |",
     "The {f2} has a range of {n2} km and a weight of {s2} kg.", "The {f2} has a range of {n1} km and a weight of {s1} kg."),
    ("relation", False, "{f1} acquired {f2} in {y1}.", "In {y1}, {f1} acquired {f2}.", "{f2} acquired {f1} in {y1}."),
    ("relation", False, "{a1} reports to {a2}.", "{a1} reports to {a2}.", "{a2} reports to {a1}."),
    ("relation", False, "The {t1} beat the {t2} in the final.", "The {t1} beat the {t2}.", "The {t2} beat the {t1}."),
    ("relation", True, "{a1} is older than {a2}.", "{a1} is older than {a2}.", "{a2} is older than {a1}."),
    ("relation", True, "{f1} sued {f2} over a patent in {y1}.", "{f1} sued {f2} in {y1}.", "{f2} sued {f1} in {y1}."),
    ("relation", True, "{a1} taught {a2} mathematics in {c1}.", "{a1} taught {a2} mathematics.", "{a2} taught {a1} mathematics."),
    ("antonym", False, "In {y1}, profits at {f1} rose by {s1} %.", "Profits at {f1} rose by {s1} % in {y1}.",
     "Profits at {f1} fell by {s1} % in {y1}."),
    ("antonym", False, "The board of {f1} approved the budget of ${n1}.", "The board approved the budget of ${n1}.",
     "The board rejected the budget of ${n1}."),
    ("antonym", False, "The {c1} office opens before the {c2} office.", "The {c1} office opens before the {c2} office.",
     "The {c1} office opens after the {c2} office."),
    ("antonym", True, "The drug raises blood pressure in {s1} % of patients.",
     "The drug raises blood pressure in {s1} % of patients.", "The drug lowers blood pressure in {s1} % of patients."),
    ("antonym", True, "The {p1} is the cheapest item in the {c1} shop.", "The cheapest item in the {c1} shop is the {p1}.",
     "The most expensive item in the {c1} shop is the {p1}."),
    ("antonym", True, "Entry to the {c1} museum is free on Mondays.", "Entry to the {c1} museum is free on Mondays.",
     "Entry to the {c1} museum is paid on Mondays."),
    ("paraphrase", False, "Refunds are issued within {s1} days of purchase.", "Refunds are issued within {s1} days of purchase.",
     "You get your money back if you ask within {s1} days of buying."),
    ("paraphrase", False, "{f1} was founded in {y1} by {a1}.", "{f1} was founded by {a1} in {y1}.", "{a1} founded {f1} in {y1}."),
    ("paraphrase", False, "The warranty covers the {p1} for 36 months.", "The warranty covers the {p1} for 36 months.",
     "The {p1} comes with a three-year warranty."),
    ("paraphrase", False, "The conference in {c1} had {n1} attendees.", "The conference in {c1} had {n1} attendees.",
     "{n1} people attended the conference in {c1}."),
    ("paraphrase", False, '{{"order": "{f1}-{s1}", "status": "shipped", "arrives": "{y1}-03-14"}}', "The order arrives on {y1}-03-14.",
     "Your order has shipped and should be with you on March 14, {y1}."),
    ("paraphrase", False, "Dogs are not allowed in the {c1} garden.", "Dogs are not allowed in the {c1} garden.",
     "You can't bring a dog into the {c1} garden."),
    ("paraphrase", False, "The shop in {c1} closes at 18:00.", "The shop in {c1} closes at 18:00.", "The shop in {c1} is open until 6 pm."),
    ("paraphrase", True, "{a1} joined {f1} as chief engineer in {y1}.", "{a1} joined {f1} in {y1}.",
     "In {y1}, {a1} became chief engineer at {f1}."),
    ("paraphrase", True, "The {p1} weighs 1.5 kg and ships within two weeks.", "The {p1} weighs 1.5 kg.",
     "It weighs 1,500 grams and is sent out in at most 14 days."),
    ("paraphrase", True, "Members of the {c1} club pay ${n1} a year.", "Members of the {c1} club pay ${n1} a year.",
     "The annual fee of the {c1} club is ${n1}."),
    ("paraphrase", True, "Unemployment in {c1} fell from {s2} % to {s1} %.", "Unemployment in {c1} fell to {s1} %.",
     "Fewer people are out of work in {c1}: {s1} % instead of {s2} %."),
    ("paraphrase", True, '{{"eligible": false, "minimum_score": 640, "score": {n1}}}', "You are not eligible: the minimum score is 640.",
     "Unfortunately you don't qualify, since the score has to be at least 640."),
    ("paraphrase", True, "{t1} defeated {t2} by {s1} points.", "{t1} defeated {t2} by {s1} points.",
     "{t2} lost to {t1} by {s1} points."),
)  # fmt: skip


def generated_pairs(count: int, seed: int, *, held_out: bool | None = None) -> Iterator[Row]:
    """About `count` pairs, the same number of each family; `held_out` selects one half of the families."""
    families = [family for family in FAMILIES if held_out is None or family[1] == held_out]
    for number in range(max(1, count // len(families))):
        for place, (kind, _, context, right, other) in enumerate(families):
            values = _values(random.Random(f"{seed}-{number}-{kind}-{place}"))
            row = {"kind": kind, "context": context.format(**values)}
            name = f"made-{kind}-{place}-{number}"
            wrong = "supported" if kind == "paraphrase" else "unsupported"
            yield {"id": f"{name}-as-it-was", **row, "answer": right.format(**values), "label": "supported"}
            yield {"id": f"{name}-changed", **row, "answer": other.format(**values), "label": wrong}


def _values(source: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for letter, names in (("a", PEOPLE), ("f", FIRMS), ("c", CITIES), ("p", PRODUCTS), ("t", TEAMS)):
        values[f"{letter}1"], values[f"{letter}2"] = source.sample(names, 2)
    values["n1"], values["n2"] = source.sample(range(105, 990), 2)
    values["s1"], values["s2"] = sorted(source.sample(range(3, 60), 2))
    values["y1"], values["y2"] = source.sample(range(1950, 2024), 2)
    values["h1"], values["h2"] = source.sample(range(2, 6), 1)[0], source.sample(range(9, 12), 1)[0]
    return values


if __name__ == "__main__":
    for row in generated_pairs(len(FAMILIES), 0):
        print(json.dumps(row, ensure_ascii=False))
