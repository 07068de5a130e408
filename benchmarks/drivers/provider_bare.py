"""The openai client in a loop that is told the limits and the outage. Arguments: SETTING CASES."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from openai import APIError
from provider_agent import answer

from provider_schedule import SETTINGS, outage_start


async def main(name: str, cases: str) -> None:
    setting, loop = SETTINGS[name], asyncio.get_running_loop()
    places, rows = asyncio.Semaphore(setting.places), json.loads(Path("cases.json").read_text())
    begin, down_from = loop.time(), outage_start(setting, int(cases)) - 0.05
    sent = 0

    async def send(row: dict[str, str]) -> str:
        nonlocal sent
        while True:
            sent += 1
            due = (sent - setting.burst) / setting.rate + 0.02 if setting.rate else 0.0
            if down_from <= max(due, loop.time() - begin) < down_from + setting.outage_seconds + 0.2:
                due = down_from + setting.outage_seconds + 0.2
            await asyncio.sleep(max(0.0, begin + due - loop.time()))
            try:
                return await answer(row["input"])
            except APIError:
                continue

    async def run(row: dict[str, str]) -> tuple[str, str]:
        async with places:
            return row["id"], "passed" if await send(row) == row["expected"] else "failed"

    outcomes = dict(await asyncio.gather(*(run(row) for row in rows)))
    Path("outcomes.json").write_text(json.dumps(outcomes), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
