"""Two suites may each have a `tools.py`, and a change in one of them must not go unnoticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from proctor.base.fingerprints import source_fingerprint
from proctor.base.references import load_file, resolve


@pytest.fixture(autouse=True)
def _as_if_nothing_were_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "path", list(sys.path))


def project(folder: Path, says: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "sibling_tools.py").write_text(f"LOADED = []\ndef say():\n    return {says!r}\n")
    (folder / "agent.py").write_text("import sibling_tools\ndef agent(q):\n    return sibling_tools.say()\n")
    (folder / "checks.py").write_text("import sibling_tools\ntools = sibling_tools\n")
    return folder


def test_a_file_imports_the_module_of_its_own_folder(tmp_path: Path) -> None:
    first, second = project(tmp_path / "a", "first"), project(tmp_path / "b", "second")
    assert resolve("agent.py:agent", first)("") == "first"
    assert resolve("agent.py:agent", second)("") == "second"
    assert resolve("agent.py:agent", first)("") == "first"


def test_a_module_is_executed_once_for_all_files_of_its_folder(tmp_path: Path) -> None:
    first, second = project(tmp_path / "a", "first"), project(tmp_path / "b", "second")
    agent = load_file(first / "agent.py")
    load_file(second / "agent.py")
    assert load_file(first / "checks.py").tools is agent.sibling_tools


def test_an_agents_fingerprint_changes_with_the_modules_it_imports(tmp_path: Path) -> None:
    folder = project(tmp_path / "a", "first")
    agent = resolve("agent.py:agent", folder)
    before = source_fingerprint(agent)
    assert source_fingerprint(agent) == before
    (folder / "sibling_tools.py").write_text("def say():\n    return 'other'\n")
    assert source_fingerprint(agent) != before


def test_an_agents_fingerprint_does_not_depend_on_other_loaded_modules(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("def agent(question):\n    return question\n")
    agent = resolve("agent.py:agent", base=tmp_path)
    before = source_fingerprint(agent)
    for name in ("test_agent.py", "conftest.py", "agent_b.py", "tools.py"):
        (tmp_path / name).write_text("def loaded(): ...\n")
        resolve(f"{name}:loaded", base=tmp_path)
    assert source_fingerprint(agent) == before


def test_an_agents_fingerprint_changes_with_a_file_that_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it imports it: from beside, from its package, or from the folder in which the command was started."""
    monkeypatch.syspath_prepend(tmp_path)
    files = {
        "desk_app/__init__.py": "",
        "desk_app/agent.py": "import helper_of_desk\nfrom desk_app.tools import search\ndef agent(q): ...\n",
        "desk_app/tools.py": "def search():\n    from .texts import HELLO\n",
        "desk_app/texts.py": "HELLO = 1\n",
        "desk_app/unused.py": "HELLO = 1\n",
        "helper_of_desk/__init__.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    agent = resolve("desk_app/agent.py:agent", base=tmp_path)
    for name in files:
        before = source_fingerprint(agent)
        (tmp_path / name).write_text(files[name] + "# changed\n")
        assert (source_fingerprint(agent) != before) is (name != "desk_app/unused.py"), name
