"""Secrets that an agent gives away are neither kept nor shown, unless the project says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

# Put together here, so that no line of this file looks like a key to those who scan repositories for keys.
BODY = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
HEX = "0123456789abcdef0123456789abcdef"
TOKENS = [
    "sk-" + "proj-" + BODY,
    "sk-" + "ant-api03-" + BODY,
    "hf" + "_" + BODY,
    "glpat" + "-" + BODY[:20],
    "gsk" + "_" + BODY,
    "npm" + "_" + BODY,
    "pypi" + "-AgEIcHlwaS5vcmc" + BODY,
    "ya29" + "." + BODY,
    "sk" + "_live_" + BODY[:24],
    "ASIA" + "IOSFODNN7EXAMPLE",
    "SG" + "." + BODY[:22] + "." + BODY,
    "ghp" + "_" + BODY,
    "xoxb" + "-123456789012-" + BODY,
    "da" + "pi" + HEX,
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + BODY,
    "correct horse in the environment",
]
REPORTS = {"--html": "r.html", "--md": "r.md", "--json": "r.json", "--junit": "r.xml", "--csv": "r.csv"}


@pytest.fixture
def project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite whose agent tells all of the tokens: in answers, tool arguments, tool results and exceptions."""
    monkeypatch.setenv("DESK_API_KEY", TOKENS[-1])
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "summary.md"))
    (project / "leaky.py").write_text(
        "import json, pathlib\n"
        "from proctor import Reply, ToolCall\n"
        "TOKENS = json.loads(pathlib.Path(__file__).with_name('tokens.json').read_text())\n"
        "def agent(question):\n"
        "    token = TOKENS[int(question.split()[0])]\n"
        "    if 'raise' in question:\n"
        "        raise RuntimeError(f'refused {token}')\n"
        "    call = ToolCall('login', {'header': token, 'password': 'hunter22'}, result={'said': f'got {token}'})\n"
        "    return Reply(f'your key is {token}', (call,))\n"
    )
    (project / "tokens.json").write_text(json.dumps(TOKENS))
    cases: list[dict[str, Any]] = [
        {"id": f"{kind}-{number}", "input": f"{number} {kind}", "expected": "nothing"}
        for number in range(len(TOKENS))
        for kind in ("answer", "raise")
    ]
    cases[0]["expected"] = f"your key is {TOKENS[0]}"
    cases.append({"id": "prompt", "input": f"0 is {TOKENS[3]}", "expected": "nothing"})
    suite = {"agent": "leaky.py:agent", "evaluators": ["ExactMatch"], "cases": cases}
    (project / "desk.json").write_text(json.dumps(suite))
    return project


def leaks(where: Path, *said: str) -> Iterator[str]:
    """Where a token stands: what was printed, and every file that the run left."""
    texts = {f"printed {number}": text.encode() for number, text in enumerate(said)}
    files = [where / ".proctor" / name for name in ("results.db", "results.db-wal")]
    files += [where / name for name in (*REPORTS.values(), "summary.md")]
    texts |= {path.name: path.read_bytes() for path in files if path.exists()}
    for name, text in texts.items():
        for token in [*TOKENS, "hunter22"]:
            if token.encode() in text or token.encode() in text.replace(b"<wbr>", b""):
                yield f"{name}: {token[:12]}"


def run_all(proctor: Command) -> str:
    ended = proctor("test", "desk.json", *(word for pair in REPORTS.items() for word in pair), "-v")
    shown = proctor("show", "last")
    return str(ended.out + ended.err + shown.out + shown.err)


def test_no_secret_is_in_the_store_on_the_screen_or_in_any_report(project: Path, proctor: Command) -> None:
    said = run_all(proctor)
    assert sorted(leaks(project, said)) == []
    assert "[secret: GitHub token, 40 characters]" in said
    assert {path.name for path in project.iterdir()} >= {*REPORTS.values(), "summary.md"}


def test_an_evaluator_sees_the_answer_as_it_was(project: Path, proctor: Command) -> None:
    run_all(proctor)
    outcomes = {trial["case"]["id"]: trial["outcome"] for trial in trials(project)}
    assert (outcomes["answer-0"], outcomes["answer-1"]) == ("passed", "failed")


def test_with_keep_secrets_they_are_kept_and_shown(project: Path, proctor: Command) -> None:
    (project / "proctor.toml").write_text("keep_secrets = true\n")
    found = set(leaks(project, run_all(proctor)))
    assert {f"{name}: {TOKENS[11][:12]}" for name in ("printed 0", "r.json", "r.html", "r.md")} <= found


def test_a_rescored_answer_says_that_it_was_masked(project: Path, proctor: Command) -> None:
    run_all(proctor)
    ended = proctor("rescore", "last", "--json", "r.json")
    assert list(leaks(project, ended.out)) == []
    first = next(trial for trial in trials(project) if trial["case"]["id"] == "answer-0")
    assert first["outcome"] == "passed"
    assert "score of the run that saw the text before secrets in it were masked" in json.dumps(first)
    assert "scores depend on text in which secrets are masked" in ended.out


def test_a_prompt_with_a_secret_in_it_is_still_the_same_question(project: Path, proctor: Command) -> None:
    run_all(proctor)
    proctor("rescore", "last", "--json", "r.json")
    assert "has changed since the run" not in (project / "r.json").read_text()


def test_keep_secrets_must_be_true_or_false(project: Path, proctor: Command) -> None:
    (project / "proctor.toml").write_text('keep_secrets = "maybe"\n')
    ended = proctor("test", "desk.json")
    assert ended.code == 2
    assert "keep_secrets must be true or false, not 'maybe'" in ended.err


def trials(where: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((where / "r.json").read_text())["trials"]
    return found
