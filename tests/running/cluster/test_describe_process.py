"""What `proctor doctor --cluster` says about a worker's process."""

from __future__ import annotations

import pytest

from proctor.running.cluster.connection import describe_process
from proctor.running.messages import WorkerDescription, decode_message


def test_only_keys_are_listed_as_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", "/work")
    monkeypatch.setenv("OLDPWD", "/")
    monkeypatch.setenv("ACME_API_KEY", "abc")
    monkeypatch.setenv("ACME_TOKEN", "abc")
    monkeypatch.setenv("EMPTY_API_KEY", "")
    keys = decode_message(describe_process([]), WorkerDescription, limit=100_000).keys
    assert {"ACME_API_KEY", "ACME_TOKEN"} <= set(keys)
    assert not {"PWD", "OLDPWD", "EMPTY_API_KEY"} & set(keys)
