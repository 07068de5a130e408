"""Async."""

import asyncio

from proctor import Case, Suite


async def slow(question):
    await asyncio.sleep(0.01)
    return "It is shipped."


async def main():
    suite = Suite("shop", [Case("Where is A-17?", expected={"contains": "shipped"})], agent=slow)
    assert await suite.run_async(parallel=4, timeout=10)
    assert suite.run()  # also inside a running loop


asyncio.run(main())
