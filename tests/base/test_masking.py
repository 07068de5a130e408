"""What is a secret, what only sounds like one, and how each is masked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.base.masking import is_masked, is_secret_name, is_secret_variable_name, mask, mask_data, mask_values
from proctor.base.secret_patterns import is_secret_variable

# Put together here, so that no line of this file looks like a key to those who scan repositories for keys.
BODY = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
HEX = "0123456789abcdef0123456789abcdef"
TOKENS = {
    "OpenAI key": "sk-" + "proj-" + BODY,
    "Anthropic key": "sk-" + "ant-api03-" + BODY,
    "Hugging Face token": "hf" + "_" + BODY,
    "GitLab token": "glpat" + "-" + BODY[:20],
    "Groq key": "gsk" + "_" + BODY,
    "npm token": "npm" + "_" + BODY,
    "PyPI token": "pypi" + "-AgEIcHlwaS5vcmc" + BODY,
    "Google token": "ya29" + "." + BODY,
    "Google key": "AI" + "za" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "Stripe key": "sk" + "_live_" + BODY[:24],
    "Stripe webhook secret": "whsec" + "_" + BODY,
    "AWS access key": "ASIA" + "IOSFODNN7EXAMPLE",
    "SendGrid key": "SG" + "." + BODY[:22] + "." + BODY,
    "GitHub token": "ghp" + "_" + BODY,
    "Slack token": "xoxb" + "-123456789012-" + BODY,
    "Databricks token": "da" + "pi" + HEX,
    "DigitalOcean token": "dop" + "_v1_" + HEX + HEX,
    "Mailgun key": "key" + "-" + HEX,
    "Twilio key": "S" + "K" + HEX,
    "Telegram token": "123456789" + ":AA" + BODY[:33],
    "Discord token": "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + BODY[:27],
    "Azure client secret": "abc8" + "Q~" + BODY[:34],
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0." + BODY,
    "private key": "-----BEGIN RSA PRIVATE " + f"KEY-----\n{HEX * 2}\n{BODY}\n-----END RSA PRIVATE KEY-----",
}


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_is_masked_by_its_shape_with_its_kind_and_length(kind: str) -> None:
    token = TOKENS[kind]
    masked = f"[secret: {kind}, {len(token)} characters]"
    assert mask(f"use {token}, please") == f"use {masked}, please"
    assert mask(json.dumps({"a": token}) if "\n" not in token else f'"{token}"').count(masked) == 1
    assert mask_data({"a": [token]}) == {"a": [masked]}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef", "abcdef"),
        ("curl -H 'authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
        ("bearer eyJhbGciOi.eyJzdWIiOiIx.SflKxwRJSM", "SflKxw"),
        ("headers x-api-key: zzzz1111", "zzzz1111"),
        ('"api_key": "zzzz1111"', "zzzz1111"),
        ('{\\"password\\": \\"my pass\\"}', "my pass"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
        ("postgres://bob:p4ss@db.example/x", "p4ss"),
        ("password = correct-horse", "correct-horse"),
        ("?access_token=abc123def&page=2", "abc123def"),
        ("Cookie: sid=abc12345; theme=dark", "abc12345"),
        ("token=9fK2mX7qP4vT8zR1wB6n", "9fK2mX7q"),
        ("Incorrect API key: sk-proj-***1234", "1234"),
    ],
)
def test_a_value_is_masked_by_the_name_before_it(text: str, secret: str) -> None:
    assert secret not in mask(text)
    assert is_masked(mask(text))


@pytest.mark.parametrize(
    "text",
    [
        "Basic understanding of the topic",
        "the bearer of bad news",
        "a task-force-of-many-people and a risk-assessment-plan",
        "the token count is 1234567890, max_tokens=100000",
        "token: 123e4567-e89b-12d3-a456-426614174000",
        "auth: required for all users; password: required; authorization: required",
        "the secret: nobody knows it",
        "https://example.org:8080/path",
        "sk-learn is a library, sk-learn-contrib-2024-extension another",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "connect(password=password, key=os.environ['KEY'])",
        "password=${DB_PASSWORD} password=<password> password=********",
        "HTTP 400, the task-specific sketch asks for basic authorization of a skeleton token",
        "bob@example.org paid 4111 1111 1111 1111",
    ],
)
def test_words_numbers_hashes_and_uuids_are_not_masked(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *("authorization", "http.request.header.authorization", "Proxy-Authorization", "x-api-key", "OPENAI_API_KEY"),
        *(
            "apiKey",
            "Set-Cookie",
            "db_password",
            "client_secret",
            "accessToken",
            "aws_secret_access_key",
            "private-key",
        ),
    ],
)
def test_values_under_the_names_of_secrets_are_masked(name: str) -> None:
    assert is_secret_name(name)
    masked = mask_data({"a": [{name: "value"}], "b": {name: ["one", "two"]}})
    assert not {"value", "one", "two"} & {masked["a"][0][name], *masked["b"][name]}


@pytest.mark.parametrize(
    "name", ["max_tokens", "input_tokens", "key", "token", "tokens", "secretary", "author", "password_hint", "cookies"]
)
def test_values_under_names_that_only_sound_like_secrets_are_not_masked(name: str) -> None:
    data = {name: "value", "n": 1}
    assert mask_data(data) is data


def test_values_of_the_environment_and_of_the_caller_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", "plain words as key")
    monkeypatch.setenv("SHORT_TOKEN", "the")
    monkeypatch.setenv("DB_PASSWORD", "postgres")
    text = "said plain words as key, and the other unusual-value of postgresql"
    assert mask(text, ["unusual-value"]) == (
        "said [secret: SOME_SERVICE_API_KEY, 18 characters], and the other [secret: 13 characters] of postgresql"
    )
    assert mask_values("plain words as key: unusual-value", ["unusual-value"]).startswith("plain words as key: [secret")


@given(st.lists(st.sampled_from([*TOKENS.values(), "password=", '"', "token: ", " ", "x", "Bearer ", "[secret: "])))
def test_masking_twice_changes_nothing(parts: list[str]) -> None:
    once = mask(" ".join(parts))
    assert mask(once) == once


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)


@given(ANYTHING, st.sampled_from(["password", "X-API-Key", "a.cookie"]))
def test_a_secret_is_masked_at_any_depth(value: Any, name: str) -> None:
    whole: Any = {"outer": [value, {name: "hunter2-very-secret"}]}
    assert "hunter2" not in json.dumps(mask_data(whole))


@pytest.mark.parametrize("size", [10, 20_000])
def test_every_token_shape_is_found_in_short_and_in_long_texts(size: int) -> None:
    for name, token in TOKENS.items():
        text = "word " * size + token + " and more"
        assert token not in mask(text), name


def test_the_shells_folders_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pwd` is a password in data, but not as the variable that every shell sets."""
    monkeypatch.setenv("PWD", "relative-folder-1")
    monkeypatch.setenv("OLDPWD", "/home/ada/older-folder")
    monkeypatch.setenv("DB_PWD", "hunter2hunter2")
    assert not is_secret_variable_name("PWD")
    assert not is_secret_variable("OLDPWD", "/home/ada/older-folder")
    text = mask("in relative-folder-1 or /home/ada/older-folder with hunter2hunter2")
    assert text.startswith("in relative-folder-1 or /home/ada/older-folder with [secret: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODEL", "gpt-4o-mini-2024-07-18"),
        ("BEDROCK", "us.anthropic.claude-3-5-sonnet-20241022-v2:0"),
        ("IMAGE", "ghcr.io/acme/support-desk:1.12.3"),
        ("BASE", "python:3.11-slim-bookworm"),
        ("SINCE", "2026-11-18T10:48:35Z"),
        ("CLUSTER", "gke_acme-prod-17_europe-west3_main-2"),
        ("HALL", "Production-Hall"),
    ],
)
def test_names_of_things_in_an_env_file_are_no_secrets(name: str, value: str) -> None:
    assert not is_secret_variable(name, value)


@pytest.mark.parametrize("value", ["zQ8vR2mK4tX9wL1p", "a1b2c3-d4e5f6-g7h8i9-j0k1l2", "tR9#kP2$vL8@qW5!zX"])
def test_random_values_in_an_env_file_are_secrets_whatever_their_name(value: str) -> None:
    assert is_secret_variable("ACME", value)
