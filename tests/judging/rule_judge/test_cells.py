"""Claims about tables, CSV, JSON and lists are judged by the cell of the row and the column that they name."""

from __future__ import annotations

import json

import pytest

from proctor.judging.rule_judge.proof import judge_claims

ENERGY = """| Year | Solar (GWh) | Wind (GWh) | Imports (GWh) |
|---|---|---|---|
| 2021 | 140 | 300 | 80 |
| 2022 | 155 | 310 | 75 |"""
LINES = "line,from,to,minutes\n12,Harbour,University,48\n7,Airport,Centre,20"
PLANS = "| Plan | Price | Setup fee |\n|---|---|---|\n| Solo | 9 EUR | 20 EUR |\n| Team | 29 EUR | 0 EUR |"
HOTEL = json.dumps(
    {
        "pool": {"depth_m": 1.6, "width_m": 8, "heated": True},
        "contract": {"auto_renew": True, "notice_days": 30},
        "rooms": [{"type": "double", "price_eur": 88}, {"type": "single", "price_eur": 66}],
    }
)
DEVICES = """Device list:
- Hall lamp: on, brightness 40 %
- Bedroom blinds: closed
- Front door: unlocked
- Heating: 19.5 °C, target 21 °C
- Garage door: closed, battery low"""
STAFF = '{"name": "Anna", "role": "nurse", "manager": "Tom", "city": "Ulm"}'

STATIONS = "| Station | Opened | Platforms |\n|---|---|---|\n| Arden Road | 1907 | 2 |\n| Thorne Park | 1998 | 3 |"

SUPPORTED = [
    (STATIONS, "Thorne Park opened in 1998."),
    ('{"reactor": "R-204", "setpoint_c": 68, "actual_c": 71.5}', "The setpoint of reactor R-204 is 68 °C."),
    ('{"order_id": "ZN-20871", "status": "in_transit"}', "Order ZN-20871 is in transit."),
    (ENERGY, "In 2022, solar produced 155 GWh."),
    (ENERGY, "Imports were 80 GWh in 2021."),
    (LINES, "Line 12 takes 48 minutes."),
    (PLANS, "Solo costs 9 euros."),
    (PLANS, "The setup fee of Solo is 20 euros."),
    (HOTEL, "The pool is 1.6 m deep."),
    (HOTEL, "The pool is 160 cm deep."),
    (HOTEL, "The pool is heated."),
    (HOTEL, "A double room costs 88 euros."),
    (DEVICES, "No, the front door is unlocked."),
    (STAFF, "Tom is Anna's manager."),
]
CONTRADICTED = [
    (STATIONS, "Thorne Park opened in 2016."),
    (
        '{"crops": [{"name": "chard", "harvest_week": 19}, {"name": "basil", "harvest_week": 22}]}',
        "The chard is harvested in week 22.",
    ),
    ('{"reactor": "R-204", "setpoint_c": 68, "actual_c": 71.5}', "The setpoint of reactor R-204 is 86 °C."),
    (ENERGY, "Imports were 75 GWh in 2021."),
    (ENERGY, "In 2022, wind produced 155 GWh."),
    (LINES, "Line 12 takes 20 minutes."),
    (PLANS, "Solo costs 20 euros."),
    (PLANS, "The setup fee of Solo is 9 euros."),
    (HOTEL, "The pool is 8 m deep."),
    (HOTEL, "A double room costs 66 euros."),
    (HOTEL, "A double room costs $88."),
    (DEVICES, "The front door is locked."),
]
OPEN = [
    (ENERGY, "Solar grew by 15 GWh in 2022."),
    (ENERGY, "Solar produced more than 155 GWh in 2022."),
    (ENERGY, "Only solar produced 155 GWh in 2022."),
    (ENERGY, "Solar produced 155 GWh."),
    (ENERGY, "Solar produced 155 GWh in 2023."),
    (ENERGY, "In 2022, solar and wind produced 155 GWh."),
    (ENERGY, "In 2022, solar imports were 155 GWh."),
    (LINES, "Line 9 takes 20 minutes."),
    (LINES, "Line 12 takes 48 minutes from University to Harbour."),
    (PLANS, "Solo may cost 9 euros."),
    (PLANS, "Solo costs 9 euros more."),
    (PLANS, "Every plan costs 9 euros."),
    (PLANS, "Solo and Team cost 9 euros."),
    (PLANS, "Solo costs 29 euros with the setup fee."),
    (PLANS, "Solo costs 108 euros a year."),
    (PLANS, "Team has no setup fee."),
    (HOTEL, "The pool is 1.6 m long."),
    (HOTEL, "The pool is about 2 m deep."),
    (HOTEL, "A double room costs at most 88 euros."),
    (HOTEL, "A room costs 88 euros."),
    (DEVICES, "The battery of the front door is low."),
    (DEVICES, "The heating is set to 21 °C."),
    ("| Item | Unit price | Total |\n|---|---|---|\n| Pen | 2 EUR | 6 EUR |", "A pen costs 2 euros."),
    (STAFF, "Anna is the manager of Tom."),
    (STAFF, "Tom's manager is Anna."),
    (STAFF, "Anna's city is in Germany."),
    ('{"service": {"backup": {"enabled": true}}}', "The service is enabled."),
    ("| City | Sister city |\n|---|---|\n| Ulm | Sinaia |\n| Bonn | Oxford |", "The sister city of Sinaia is Ulm."),
]


@pytest.mark.parametrize(
    ("passage", "claim", "verdict"),
    [
        *((*pair, "supported") for pair in SUPPORTED),
        *((*pair, "contradicted") for pair in CONTRADICTED),
        *((*pair, "cannot tell") for pair in OPEN),
    ],
)
def test_a_claim_about_data_is_judged_by_the_cell_that_it_names(passage: str, claim: str, verdict: str) -> None:
    assert judge_claims([claim], [passage])[0].answer == verdict


def test_the_question_may_name_the_row() -> None:
    question = ["What was imported in 2021?"]
    assert judge_claims(["Imports were 80 GWh."], [ENERGY], question)[0].answer == "supported"
    assert judge_claims(["Imports were 75 GWh."], [ENERGY], question)[0].answer == "contradicted"
    assert judge_claims(["Imports were 75 GWh."], [ENERGY])[0].answer == "cannot tell"
