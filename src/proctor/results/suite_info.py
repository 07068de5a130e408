"""The facts about a suite that are stored with a run, its quarantined cases among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.base.json_data import Json, to_json
from proctor.cases.quarantine_file import is_expired
from proctor.cases.suite import Criteria, Quarantine


@dataclass(frozen=True, slots=True)
class QuarantinedCase:
    """A case that runs and is reported, but does not affect the verdict until a date."""

    case: str
    reason: str
    until: str
    owner: str | None = None
    expired: bool = False
    """Whether the date had passed when the run started."""


def quarantine_to_json(item: QuarantinedCase) -> dict[str, Json]:
    """The form in which reports have it, with `over`, the earlier name of `expired`."""
    return {**to_json(item), "over": item.expired}


def quarantined_cases(quarantined: Sequence[tuple[str, Quarantine]]) -> tuple[QuarantinedCase, ...]:
    """The quarantined cases of a run; whether each quarantine has expired is decided now and stored with the run."""
    if not quarantined:
        return ()
    return tuple(
        QuarantinedCase(case, item.reason, item.until, item.owner, is_expired(item)) for case, item in quarantined
    )


@dataclass(frozen=True, slots=True)
class SuiteInfo:
    """The facts about a suite that are stored with a run."""

    name: str
    path: str | None
    format: str
    agent: str
    """The agent's name."""
    agent_fingerprint: str
    criteria: Criteria
    cases: int
    planned: int
    """Number of planned trials, repeats included."""
    quarantined: tuple[QuarantinedCase, ...] = ()
    source: str = ""
    """The name of the suite in its file, if the run compares several arms and `name` is one name per arm."""
    config: str = ""
    """The path of the config file that names its evaluators, if it is not the one next to the suite."""
    version: str = ""
    """The version of the repository that its arm ran, such as `main (1a2b3c4d5e)`; empty for the working folder."""

    reference: str = ""
    """The agent's own name, if `agent` is the name of its arm."""

    @property
    def arm(self) -> str:
        """The name of its arm, if the run compares several; otherwise empty."""
        return self.agent if self.source else ""
