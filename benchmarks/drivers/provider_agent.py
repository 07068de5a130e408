"""The agent of the provider benchmark: the plain openai client, which does not retry, so that the tool has to.

The address comes from `OPENAI_BASE_URL`. `answer_in_thread` is the same with the synchronous client.
"""

from __future__ import annotations

from openai import AsyncOpenAI, OpenAI

MODEL = "loopback-agent"
_client = AsyncOpenAI(max_retries=0)
_threaded_client = OpenAI(max_retries=0)


async def answer(question: str) -> str:
    completion = await _client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": question}])
    return completion.choices[0].message.content or ""


def answer_in_thread(question: str) -> str:
    messages = [{"role": "user", "content": question}]
    return _threaded_client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content or ""
