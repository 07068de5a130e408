"""A LangGraph agent against the loopback provider: LangChain's own client, which retries twice."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

agent = create_agent(ChatOpenAI(model="loopback-agent", max_retries=2), tools=[])
