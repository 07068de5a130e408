"""The shapes that vendors give to their tokens, and where they stand in a text."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

LONGEST_PEM = 20_000
LONG_TEXT = 10_000

_SHAPES: tuple[tuple[str, str], ...] = (
    ("Anthropic key", r"sk-ant-[\w*-]{8,}"),
    ("OpenAI key", r"sk-(?:proj|svcacct|admin|None)-[\w*-]{6,}"),
    ("API key", r"sk-(?:live|test)-[\w*-]{6,}"),
    ("OpenRouter key", r"sk-or-[\w-]{16,}"),
    ("Langfuse key", r"sk-lf-[\w-]{16,}"),
    ("OpenAI key", r"sk-(?=[A-Za-z*]{0,99}[0-9*])[A-Za-z0-9*]{20,}"),
    ("Stripe key", r"sk_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("Stripe key", r"rk_(?:live|test)_[A-Za-z0-9]{10,}"),
    ("Stripe webhook secret", r"whsec_[A-Za-z0-9+/=]{16,}"),
    ("GitHub token", r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("GitHub token", r"github_pat_\w{22,}"),
    ("GitLab token", r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-[\w-]{16,}"),
    ("Grafana token", r"gls?[ac]_[\w+/=]{20,}"),
    ("Groq key", r"gsk_[A-Za-z0-9]{16,}"),
    ("Hugging Face token", r"hf_[A-Za-z0-9]{20,}"),
    ("Vault token", r"hv[sb]\.[\w-]{20,}"),
    ("Slack webhook", r"hooks\.slack\.com/services/T\w{6,20}/B\w{6,20}/\w{16,40}"),
    ("xAI key", r"xai-[A-Za-z0-9]{20,}"),
    ("Slack token", r"xox[abcdeoprs]-[\w-]{10,}"),
    ("Slack token", r"xapp-[\w-]{10,}"),
    ("Perplexity key", r"pplx-[A-Za-z0-9]{20,}"),
    ("PyPI token", r"pypi-[\w-]{30,}"),
    ("Pinecone key", r"pcsk_\w{20,}"),
    ("Airtable token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("Replicate token", r"r8_[A-Za-z0-9]{20,}"),
    ("NVIDIA key", r"nvapi-[\w-]{20,}"),
    ("npm token", r"npm_[A-Za-z0-9]{30,}"),
    ("Notion token", r"ntn_[A-Za-z0-9]{40,}"),
    ("Cerebras key", r"csk-[a-z0-9]{20,}"),
    ("Fireworks key", r"fw_[A-Za-z0-9]{20,}"),
    ("Tavily key", r"tvly-[\w-]{16,}"),
    ("LangSmith key", r"lsv2_(?:pt|sk)_\w{20,}"),
    ("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    ("DigitalOcean token", r"do[opr]_v1_[a-f0-9]{40,}"),
    ("Databricks token", r"dapi[a-f0-9]{32}(?:-\d)?"),
    ("Docker token", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    ("Discord webhook", r"discord(?:app)?\.com/api/webhooks/\d{10,25}/[\w-]{40,100}"),
    ("Shopify token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("Square token", r"sq0(?:atp|csp|idp)-[\w-]{22,}"),
    ("Azure shared access signature", r"sig=[A-Za-z0-9%+/]{40,}={0,2}"),
    ("Mailgun key", r"key-[0-9a-f]{32}(?![0-9a-f])"),
    ("Google token", r"ya29\.[\w.*-]{10,}"),
    ("Google key", r"AIza[\w*-]{20,}"),
    ("Google client secret", r"GOCSPX-[\w-]{20,}"),
    ("AWS access key", r"A(?:KIA|SIA|ROA|IDA|BIA|CCA)[A-Z0-9*]{16}(?![A-Z0-9])"),
    ("Atlassian token", r"ATATT3[\w=-]{60,}"),
    ("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,60}"),
    ("Square token", r"EAAA[\w-]{56,}"),
    ("Postman key", r"PMAK-[a-f0-9-]{40,}"),
    ("New Relic key", r"NRAK-[A-Z0-9]{20,}"),
    ("SendGrid key", r"SG\.[\w-]{16,64}\.[\w-]{16,64}"),
    ("Twilio key", r"SK[0-9a-f]{32}(?![0-9a-f])"),
    ("JWT", r"eyJ(?<![\w-]eyJ)[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"),
    ("Discord token", r"M[DTjz][AEIMQUYcgk][wxyz0-5][\w-]{19,26}\.[\w-]{6}\.[\w-]{27,40}"),
    ("Discord token", r"N[DTjz][AEIMQUYcgk][wxyz0-5][\w-]{19,26}\.[\w-]{6}\.[\w-]{27,40}"),
    ("Discord token", r"O[DTjz][AEIMQUYcgk][wxyz0-5][\w-]{19,26}\.[\w-]{6}\.[\w-]{27,40}"),
    ("private key", r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
)
"""Kind and shape. Each shape begins with a plain character, by which the search finds places worth a closer look."""

_LOOSE_SHAPES: tuple[tuple[str, str, str], ...] = (
    ("Telegram token", ":AA", r"(?<![0-9])[0-9]{8,10}:AA[\w-]{33}(?![\w-])"),
    ("Mailchimp key", "-us", r"(?<![0-9a-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])"),
    ("Azure client secret", "Q~", r"(?<![\w~.-])[\w~.]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~-])"),
    ("URL password", "@", r"(?<=://)[^\s:/@\"']{0,100}:[^\s/@\"']{1,200}(?=@)"),
)
"""Kind, a text without which there is none, and shape."""


def find_shapes(text: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and end of each token, and of each private key."""
    numbers = _possible(text)
    if numbers and len(text) < LONG_TEXT:  # one pattern for all short texts: compiling takes longer than looking
        numbers = tuple(range(len(_SHAPES)))
    for match in _shapes(numbers).finditer(text) if numbers else ():
        kind = _SHAPES[int((match.lastgroup or "s0")[1:])][0]
        yield kind, match.start(), _pem_end(text, match.end()) if kind == "private key" else match.end()
    for kind, hint, _ in _LOOSE_SHAPES:
        if hint in text:
            yield from ((kind, *match.span()) for match in _loose_shape(kind).finditer(text))


def _pem_end(text: str, start: int) -> int:
    """Where a private key ends whose first line ends at `start`; one that is cut off ends with its last whole line."""
    dashes = text.find("-----", start, start + LONGEST_PEM)
    if dashes < 0 or not text.startswith("-----END", dashes):
        rest = _pem_lines().match(text, start, start + LONGEST_PEM)
        return start if rest is None else rest.end()
    close = text.find("-----", dashes + 8, dashes + 80)
    return dashes + 8 if close < 0 else close + 5


def _possible(text: str) -> tuple[int, ...]:
    """Numbers of the shapes whose first characters are in a text: looking for these is much quicker than for shapes."""
    return tuple(number for number, head in enumerate(_heads()) if head in text)


@functools.cache
def _heads() -> tuple[str, ...]:
    return tuple(_head(shape) for _, shape in _SHAPES)


def _head(shape: str) -> str:
    """The plain characters that a shape begins with."""
    head = re.match(r"[A-Za-z0-9_-]+(?![?*+{])|[A-Za-z]", shape)
    return "" if head is None else head[0]


@functools.lru_cache(maxsize=64)
def _shapes(numbers: tuple[int, ...]) -> re.Pattern[str]:
    """These shapes at once: the search looks for their first characters, and a shape begins where a word does."""
    wanted = [(number, _SHAPES[number][1]) for number in numbers]
    return re.compile(
        "|".join(rf"{shape[0]}(?<![A-Za-z0-9]{shape[0]})(?P<s{number}>{shape[1:]})" for number, shape in wanted)
    )


@functools.cache
def _loose_shape(kind: str) -> re.Pattern[str]:
    return re.compile(next(shape for name, _, shape in _LOOSE_SHAPES if name == kind))


@functools.cache
def _pem_lines() -> re.Pattern[str]:
    return re.compile(r"(?:(?:\\[nr]|\s){1,4}[A-Za-z0-9+/=]{40,80})+")
