"""How secrets look in a text: the shapes that vendors give to their tokens, and values after the name of a secret.

Loaded for texts that may hold one, which few do. All patterns take linear time: quantifiers are bounded or never meet
the same characters twice.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from proctor.base.secrets import (
    LONGEST_NAME,
    LONGEST_VALUE,
    RANDOM_LENGTH,
    SECRET_NAMES,
    SHORTEST_VALUE,
    UNCERTAIN_NAMES,
    Secret,
    is_secret_name,
    is_uncertain,
    is_value,
    kind_of,
    last_part,
    looks_random,
)

LONGEST_PEM = 20_000
LONG_TEXT = 10_000
_PASSWORDS = ("password", "passwd", "pwd", "passphrase")

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


def find_by_name(text: str) -> Iterator[Secret]:
    """`api_key=...`, `"password": "..."`, `Authorization: Bearer ...`, `Bearer ...`."""
    lowered = text.lower()
    if len(lowered) != len(text):  # one letter becomes two: places would not be the same
        lowered = "".join(character.lower() if character.isascii() else character for character in text)
    position = 0
    while (match := _named().search(lowered, position)) is not None:
        position = match.end()
        name = match[0].rstrip(" \t:=>\"'\\")
        if name in ("bearer", "basic") and match[0][-1] in " \t":
            value = _SCHEME_VALUE.match(text, position)
            if value is not None and _is_credential(name, value[0]):
                yield Secret("Bearer token" if name == "bearer" else "Basic authorization", *value.span(), True)
            continue
        name = _whole_name(text, match.start(), match.start() + len(name))
        found = _value_after(text, position, name)
        if found is not None:
            yield Secret(kind_of(name), *found, True)
            position = found[1]


def _whole_name(text: str, start: int, end: int) -> str:
    first = start
    while first > 0 and end - first < LONGEST_NAME and (text[first - 1].isalnum() or text[first - 1] in "_.-"):
        first -= 1
    return "" if text[first - 1 : first] == "[" and text[first:end] == "secret" else text[first:end]


def _value_after(text: str, start: int, name: str) -> tuple[int, int] | None:
    """Where the secret after a name stands; `None` where it is an ordinary word, a variable, or masked already."""
    certain = bool(name) and is_secret_name(name)
    if not certain and not is_uncertain(name):
        return None
    last, equals = last_part(name), text[start - 1] == "="
    quote = text[start : start + 2].lstrip("\\")[:1] if text[start : start + 1] in ("\\", '"', "'") else ""
    if quote in ('"', "'") and quote:
        start += 2 if text[start] == "\\" else 1
    if last.endswith("authorization"):
        scheme = _SCHEME.match(text, start)
        value = _BARE.match(text, start if scheme is None else scheme.end())
        if value is None or (scheme is None and not _is_unusual(value[0])):
            return None
        return value.span()
    if quote in ('"', "'") and quote:
        value = _QUOTED[quote, text[start - 2 : start - 1] == "\\"].match(text, start)
        random = value is not None and (certain or looks_random(value[0]))
        return value.span() if value is not None and random and is_value(value[0], last) else None
    if last.endswith("cookie"):
        value = _COOKIES.match(text, start)
        return None if value is None else value.span()
    value = _BARE.match(text, start)
    if value is None or not is_value(value[0], last):
        return None
    if not certain:
        return value.span() if looks_random(value[0]) else None
    tight = equals and last.endswith(_PASSWORDS) and text[value.end() : value.end() + 1] != "("
    plain_word = tight and len(value[0]) >= SHORTEST_VALUE and value[0].isalpha() and "pass" not in value[0].lower()
    return value.span() if plain_word or _is_unusual(value[0]) else None


def _is_unusual(value: str) -> bool:
    """Neither a word nor the name of something in code."""
    return not _IDENTIFIER.fullmatch(value.rstrip("="))


def _is_credential(scheme: str, value: str) -> bool:
    if scheme == "bearer":
        mixed = len(value) >= RANDOM_LENGTH and value.lower() != value and value[1:].upper() != value[1:]
        return mixed or (len(value) >= 12 and any(character.isdigit() for character in value))
    import base64
    import binascii

    try:
        return b":" in base64.b64decode(value[:400].rstrip("=") + "==", validate=False)
    except (binascii.Error, ValueError):
        return False


_BARE = re.compile(rf"[^\s\"'`,;&=<>{{}}()\[\]\\]{{4,{LONGEST_VALUE}}}={{0,2}}")
_QUOTED = {
    ('"', False): re.compile(rf'(?:[^"\\\r\n]|\\.){{1,{LONGEST_VALUE}}}'),
    ("'", False): re.compile(rf"(?:[^'\\\r\n]|\\.){{1,{LONGEST_VALUE}}}"),
    ('"', True): re.compile(rf'[^"\\\r\n]{{1,{LONGEST_VALUE}}}'),
    ("'", True): re.compile(rf"[^'\\\r\n]{{1,{LONGEST_VALUE}}}"),
}
"""By quote, and whether it stands escaped in a text that is itself quoted."""
_COOKIES = re.compile(rf"[\w.-]{{1,100}}=[^\r\n\"'\[\]]{{4,{LONGEST_VALUE}}}")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest|apikey|negotiate|bot)[ \t]{1,4}", re.IGNORECASE)
_SCHEME_VALUE = re.compile(rf"[A-Za-z0-9+/=._~*-]{{8,{LONGEST_VALUE}}}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.]*[!?:]?")


@functools.cache
def _named() -> re.Pattern[str]:
    """In text in lower case: a name, the quote that closes it, and what stands between a name and its value."""
    names: dict[str, list[str]] = {"b": [r"(?:earer|asic)[ \t]{1,4}(?=[a-z0-9])"]}
    between = r"(?:\\?[\"'])?[ \t]{0,3}(?:=>|:=|[:=])[ \t]{0,3}"
    for name in sorted((*SECRET_NAMES, *UNCERTAIN_NAMES), key=len, reverse=True):
        names.setdefault(name[0], []).append(name[1:].replace("_", "[_-]?") + between)
    return re.compile("|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in names.items()))
