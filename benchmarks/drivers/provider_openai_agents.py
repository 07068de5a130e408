"""An agent of the OpenAI Agents SDK against the loopback provider: the SDK's own client, which retries twice."""

from __future__ import annotations

from agents import Agent, set_default_openai_api, set_tracing_disabled

set_default_openai_api("chat_completions")  # the provider has no Responses API
set_tracing_disabled(True)

agent = Agent(name="loopback", model="loopback-agent")
