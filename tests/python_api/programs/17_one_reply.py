"""One reply."""

from proctor import ask, expect, tool


@tool
def status(order):
    return "shipped"


def test_status():
    reply = ask(lambda q: f"It is {status('A-17')}.", "Where is A-17?")
    assert reply.tool_calls[0].args == {"order": "A-17"}
    expect(reply, contains=["shipped"], tools=[{"name": "status", "args": {"order": "A-17"}}])
