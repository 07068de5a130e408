from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.environment import env_files, environment_from, read_env_file
from proctor.base.errors import UsageError
from proctor.base.masking import mask

TEXT = """\ufeff# a comment
PLAIN=one two  # not this
export EXPORTED = yes
SINGLE='${PLAIN} # kept \\n'
DOUBLE="a \\"b\\"\\nc"
LONG="first
second"
JOINED=${PLAIN}/${DOUBLE_MISSING}x
EMPTY=
URL=http://h/#part
no assignment
=nameless
1X=digit
LAST=end"""


def test_env_files_are_read_with_quotes_comments_and_export(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(TEXT, encoding="utf-8")
    assert read_env_file(tmp_path / ".env") == {
        "PLAIN": "one two",
        "EXPORTED": "yes",
        "SINGLE": "one two # kept \\n",
        "DOUBLE": 'a "b"\nc',
        "LONG": "first\nsecond",
        "JOINED": "one two/x",
        "EMPTY": "",
        "URL": "http://h/#part",
        "LAST": "end",
    }


@given(st.text())
def test_any_env_file_is_read_or_refused_with_a_usage_error(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, ".env")
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            variables = read_env_file(path)
        except UsageError as error:
            assert "is not text" in str(error)
        else:
            assert all(name and "\x00" not in value for name, value in variables.items())


@pytest.mark.parametrize("content", [b"\xff\xfeA=1", b"A=" + b"x" * 1_000_001])
def test_an_error_about_an_env_file_does_not_show_its_content(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(UsageError, match=r"\.env: "):
        read_env_file(tmp_path / ".env")
    with pytest.raises(UsageError, match="cannot be read"):
        read_env_file(tmp_path)


def test_the_environment_wins_over_env_files_and_is_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    for folder, text in ((near, "A_REAL=file\nB_FILE=near\n"), (far, "B_FILE=far\nC_FILE=far\n")):
        folder.mkdir()
        (folder / ".env").write_text(text)
    monkeypatch.setenv("A_REAL", "real")
    before = dict(os.environ)
    with environment_from(env_files(near, far, near, tmp_path)):
        assert (os.environ["A_REAL"], os.environ["B_FILE"], os.environ["C_FILE"]) == ("real", "near", "far")
    assert dict(os.environ) == before


def test_a_variable_stays_until_its_last_context_ends(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SHARED_BY_TWO=1\n")
    first, second = environment_from(env_files(tmp_path)), environment_from(env_files(tmp_path))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert os.environ["SHARED_BY_TWO"] == "1"
    second.__exit__(None, None, None)
    assert "SHARED_BY_TWO" not in os.environ


def test_secrets_of_an_env_file_are_masked_after_its_context_and_ordinary_words_are_not(tmp_path: Path) -> None:
    """A variable is a secret if its name or the shape of its value says so."""
    secrets = {"SHOP_PASSWORD": "blue-green-17", "INTERNAL": "q7Rf02LmZx81KpTn", "BOT": "xoxb-1234567890-abcdef"}
    words = {"REGION": "frankfurt", "LOG_LEVEL": "information", "SERVICE_URL": "http://localhost:8000/v1/answers"}
    lines = [f"{name}={value}\n" for name, value in {**secrets, **words}.items()]
    (tmp_path / ".env").write_text("".join(lines))
    with environment_from(env_files(tmp_path)):
        pass
    for value in secrets.values():
        assert value not in mask(f"they like {value} most")
    for value in words.values():
        assert mask(f"they like {value} most") == f"they like {value} most"
