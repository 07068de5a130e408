"""The reply to a prompt of the user's own: a score, and the reasoning before it."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Scored(BaseModel):
    reasoning: str = Field(description="what speaks for and against, in a few sentences")
    score: float = Field(ge=0, le=1, description="from 0 to 1")
