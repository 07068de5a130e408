"""A run of many trials in the viewer: pages stay small, and every case can be found."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import httpx2
import pytest
from reporting_samples import FAILED, trial
from served_viewer import serve_viewer
from stored_runs import FIRST, store_run

from proctor.viewer.cases import CASES_PER_PAGE

TRIALS = int(os.environ.get("PROCTOR_TEST_VIEWER_TRIALS", "20000"))
"""20,000 keep `make test` short; the figure in docs/reliability.md is from 100,000."""
FAILING = range(0, TRIALS, 100)
MAX_PAGE_BYTES = 400_000


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder = tmp_path_factory.mktemp("large") / ".proctor"
    store_run(
        folder,
        FIRST,
        (
            trial(f"case-{number:06}", FAILED, f"wrong-{number}") if number in FAILING else trial(f"case-{number:06}")
            for number in range(TRIALS)
        ),
    )
    with serve_viewer(folder) as client:
        client.timeout = 600  # the first page reads the whole run, and the machine may be busy
        yield client


def cases_at(client: httpx2.Client, address: str) -> list[str]:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text[:500]
    assert len(answer.content) < MAX_PAGE_BYTES
    return re.findall(r'<tr data-item><th scope="row"><a href="[^"]*"[^>]*>([^<]*)</a>', answer.text)


def test_each_page_of_a_large_run_is_small_and_together_they_have_all_cases(client: httpx2.Client) -> None:
    last = -(-TRIALS // CASES_PER_PAGE)
    for page in (1, 2, last // 2, last):
        first = (page - 1) * CASES_PER_PAGE
        assert cases_at(client, f"/runs/{FIRST}?sort=plan&page={page}") == [
            f"case-{number:06}" for number in range(first, min(first + CASES_PER_PAGE, TRIALS))
        ]
    assert cases_at(client, f"/runs/{FIRST}?page={last + 1}") == []


def test_failures_of_a_large_run_come_first_and_can_be_filtered(client: httpx2.Client) -> None:
    failing = [f"case-{number:06}" for number in FAILING]
    assert cases_at(client, f"/runs/{FIRST}") == failing[:CASES_PER_PAGE]
    assert cases_at(client, f"/runs/{FIRST}?show=failed&sort=plan&page=2") == failing[CASES_PER_PAGE:][:CASES_PER_PAGE]


def test_one_case_of_a_large_run_is_found_by_its_name_and_by_a_word_of_its_answer(client: httpx2.Client) -> None:
    name = f"case-{FAILING[-1]:06}"
    assert cases_at(client, f"/runs/{FIRST}?q={name}") == [name]
    assert cases_at(client, f"/runs/{FIRST}?q=wrong-{FAILING[-1]}") == [name]
    assert f"wrong-{FAILING[-1]}" in client.get(f"/runs/{FIRST}/case?suite=support&case={name}").text


def test_the_list_of_runs_with_a_large_one_is_small(client: httpx2.Client) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert f"{TRIALS:,}" in answer.text
    assert len(answer.content) < MAX_PAGE_BYTES
