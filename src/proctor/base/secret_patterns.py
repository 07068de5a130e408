"""What a secret looks like in a text: the shapes that vendors give to their tokens, and values after certain names.

Shapes are specific: almost nothing else begins with `sk-ant-`. Names are not: `token` and `key` are ordinary words, so
a value after a name has to look like one too. Whether a value under a name is a secret, in a text, in data or in a
`.env` file, is decided here and nowhere else.

All patterns take linear time: quantifiers are bounded or never meet the same characters twice. A pattern is tried only
if the characters that it begins with are in the text, which is many times quicker than trying all of them.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

MIN_VALUE_LENGTH = 8
"""Shorter values of environment variables occur in ordinary words."""
MAX_VALUE_LENGTH = 4096
MAX_NAME_LENGTH = 80
MAX_PEM_LENGTH = 20_000
RANDOM_LENGTH, RANDOM_ENTROPY = 16, 3.5
MAX_WORD_LENGTH = 20
"""A word of letters alone may be a token from this length on; shorter ones are ordinary, such as `ContextRecall`."""

SECRET_NAMES = tuple(
    """authorization cookie api_key apikey api_token apitoken password passwd pwd passphrase secret secret_key secretkey
    access_key accesskey access_token accesstoken refresh_token refreshtoken auth_token authtoken id_token
    bearer_token session_token sessiontoken private_key privatekey signing_key encryption_key account_key accountkey
    master_key subscription_key service_key credential credentials connection_string connectionstring""".split()
)
"""How the name of a secret ends, in lower case and with underscores."""
UNCERTAIN_NAMES = ("token", "auth")
"""Names that ordinary things have too: a value after one is a secret only if it looks random."""
_CONFIG_NAME = re.compile(
    r"(?i)api[_-]?key|passw(or)?d|secret|credential|authorization|connection[_-]?string|token$|cookie$|(^|[_-])key$"
)
_ORDINARY_NAME = re.compile(r"(file|path|dir|folder|name|url|uri|endpoint|region|type|count|limit|size|sock)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_PART = r"(?:[A-Za-z]{1,20}|[A-Za-z]{4,20}[0-9]{1,2}|[0-9]{1,8}|[A-Za-z0-9]{1,3}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}T[0-9]{2})"
_WORDS_AND_NUMBERS = re.compile(rf"{_PART}(?:[-_.:/@+]{{1,3}}{_PART})+Z?")
_PASSWORDS = ("password", "passwd", "pwd", "passphrase")
_HINTS = tuple("passw pwd passphrase secret token key auth cookie credential bearer basic connection".split())
"""One of these is in every name of a secret and in every scheme of authorization."""

MASK_PATTERN = re.compile(r"\[secret: [^\[\]]{1,80}, [0-9]{1,12} characters\]")
"""The text that replaces a secret."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is in a text."""

    kind: str
    """In words: the vendor's token, or the name before the value."""
    start: int
    end: int
    by_name: bool = False
    """Whether it was found by the name before it, and not by its shape."""


def find_secrets_in(text: str) -> Iterator[Secret]:
    """The secrets that can be recognized from the text alone; they may overlap."""
    yield from find_shapes(text)
    lowered = text.lower()
    if any(hint in lowered for hint in _HINTS):
        yield from find_by_name(text, lowered)


def may_contain_secrets(text: str) -> bool:
    """Whether a text is worth a closer look, which few are.

    Vendors' tokens are words of 16 characters or more, with digits or signs unless they are longer still. All other
    secrets follow a name.
    """
    for word in text.split():
        if len(word) >= RANDOM_LENGTH and (len(word) >= MAX_WORD_LENGTH or not word.isalpha()):
            return True
    lowered = text.lower()
    return any(hint in lowered for hint in _HINTS)


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str, *, config_names: bool = False) -> bool:
    """Whether values of that name are secrets: `http.request.header.authorization`, `X-Api-Key`, `apiKey`.

    `config_names` accepts more names, such as `key` and `token`, for the settings of a model or an account.
    """
    last = last_part(name)
    for ending in SECRET_NAMES:
        if last.endswith(ending) and ("_" not in ending or last == ending or last.endswith("_" + ending)):
            return True
    return config_names and _CONFIG_NAME.search(last) is not None and _ORDINARY_NAME.search(last) is None


_FOLDER_VARIABLES = ("PWD", "OLDPWD")
"""The shell's variables for folders; elsewhere `pwd` is a password."""


def is_secret_variable_name(name: str) -> bool:
    """Whether an environment variable is a secret by its name."""
    return name not in _FOLDER_VARIABLES and is_secret_name(name, config_names=True)


def is_secret_variable(name: str, value: str) -> bool:
    """Whether an environment variable, as in a `.env` file, is a secret by its name or by the shape of its value."""
    if name in _FOLDER_VARIABLES:
        return False
    if is_secret_variable_name(name) or next(find_shapes(value), None) is not None:
        return True
    return looks_random(value) and not _ORDINARY_NAME.search(last_part(name))


def is_secret_value(name: str, text: str, *, config_names: bool = False) -> bool:
    """Whether a text under a name, as in data, is a secret."""
    if not name or not can_be_secret(text, name):
        return False
    return is_secret_name(name, config_names=config_names) or (is_uncertain_name(name) and looks_random(text))


def looks_random(value: str) -> bool:
    """Long, of mixed characters, with more information per character than words have, and neither a UUID nor a name.

    Names of models, images and releases are words and numbers: `gpt-4o-mini-2024-07-18`, `ghcr.io/acme/app:1.2.3`.
    """
    if len(value) < RANDOM_LENGTH or not any(character.isdigit() for character in value[:MAX_VALUE_LENGTH]):
        return False
    sample = value[:MAX_VALUE_LENGTH]
    counts = Counter(sample)
    entropy = -sum(count / len(sample) * math.log2(count / len(sample)) for count in counts.values())
    is_ordinary = " " in sample or _UUID.fullmatch(value) or _WORDS_AND_NUMBERS.fullmatch(value)
    return entropy >= RANDOM_ENTROPY and not is_ordinary


def can_be_secret(text: str, name: str) -> bool:
    """Whether a text can be a secret at all: not a placeholder, a variable or a mask. `pwd` may also name a folder."""
    if name.lower() == "pwd" and text.startswith(("/", "~", "C:")):
        return False
    if text.startswith(("${", "$", "<", "[secret: ")) and (text[0] != "[" or MASK_PATTERN.fullmatch(text)):
        return False
    return any(character.isalnum() for character in text[:MAX_VALUE_LENGTH])


@functools.lru_cache(maxsize=4096)
def last_part(name: str) -> str:
    """The last part of a dotted name, in lower case and with underscores."""
    return _CAMEL.sub("_", name[-MAX_NAME_LENGTH:].rpartition(".")[2]).lower().replace("-", "_")


def is_uncertain_name(name: str) -> bool:
    """Whether ordinary things have this name, too."""
    last = last_part(name)
    return last in UNCERTAIN_NAMES or last.endswith(("_token", "_auth"))


def secret_kind(name: str) -> str:
    """A name as it is written in a mask: short, and without characters that a pattern would take for a range."""
    return re.sub(r"[^A-Za-z0-9_ ]", "_", name.rpartition(".")[2])[:40] or "value"


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
"""Kind and shape. Each shape begins with plain characters, by which the search finds places worth a closer look."""

_LOOSE_SHAPES: tuple[tuple[str, str, str], ...] = (
    ("Telegram token", ":AA", r"(?<![0-9])[0-9]{8,10}:AA[\w-]{33}(?![\w-])"),
    ("Mailchimp key", "-us", r"(?<![0-9a-z])[0-9a-f]{32}-us[0-9]{1,2}(?![0-9a-z])"),
    ("Azure client secret", "Q~", r"(?<![\w~.-])[\w~.]{3}[0-9]Q~[\w~.-]{31,34}(?![\w~-])"),
    ("URL password", "@", r"(?<=://)[^\s:/@\"']{0,100}:[^\s/@\"']{1,200}(?=@)"),
)
"""Kind, a text without which there is none, and shape."""


def find_shapes(text: str) -> Iterator[Secret]:
    """Each token and each private key in a text."""
    for kind, head, shape in _HEADS:
        if head in text:
            for match in re.finditer(shape, text):
                end = _pem_end(text, match.end()) if kind == "private key" else match.end()
                yield Secret(kind, match.start(), end)
    for kind, hint, shape in _LOOSE_SHAPES:
        if hint in text:
            yield from (Secret(kind, *match.span()) for match in re.finditer(shape, text))


def _with_head(kind: str, shape: str) -> tuple[str, str, str]:
    """The plain characters that a shape begins with, and a pattern for the shape at the beginning of a word.

    The first character comes before the look-behind, so that the search skips to the next place that has it.
    """
    head = re.match(r"[A-Za-z0-9_-]+(?![?*+{])|[A-Za-z]", shape)
    return kind, "" if head is None else head[0], rf"{shape[0]}(?<![A-Za-z0-9]{shape[0]}){shape[1:]}"


_HEADS = tuple(_with_head(kind, shape) for kind, shape in _SHAPES)
_PEM_LINES = re.compile(r"(?:(?:\\[nr]|\s){1,4}[A-Za-z0-9+/=]{40,80})+")


def _pem_end(text: str, start: int) -> int:
    """Where a private key ends whose first line ends at `start`; one that is cut off ends with its last whole line."""
    dashes = text.find("-----", start, start + MAX_PEM_LENGTH)
    if dashes < 0 or not text.startswith("-----END", dashes):
        rest = _PEM_LINES.match(text, start, start + MAX_PEM_LENGTH)
        return start if rest is None else rest.end()
    close = text.find("-----", dashes + 8, dashes + 80)
    return dashes + 8 if close < 0 else close + 5


def find_by_name(text: str, lowered: str) -> Iterator[Secret]:
    """`api_key=...`, `"password": "..."`, `Authorization: Bearer ...`; `lowered` is the text in lower case."""
    if len(lowered) != len(text):  # one letter becomes two, and positions would differ
        lowered = "".join(character.lower() if character.isascii() else character for character in text)
    position = 0
    while (match := _NAME_AND_SEPARATOR.search(lowered, position)) is not None:
        position = match.end()
        name = match[0].rstrip(" \t:=>\"'\\")
        if name in ("bearer", "basic") and match[0][-1] in " \t":
            value = _SCHEME_VALUE.match(text, position)
            if value is not None and _is_credential(name, value[0]):
                yield Secret("Bearer token" if name == "bearer" else "Basic authorization", *value.span(), True)
            continue
        name = _whole_name(text, match.start(), match.start() + len(name))
        span = _value_after(text, position, name)
        if span is not None:
            yield Secret(secret_kind(name), *span, True)
            position = span[1]


def _whole_name(text: str, start: int, end: int) -> str:
    first = start
    while first > 0 and end - first < MAX_NAME_LENGTH and (text[first - 1].isalnum() or text[first - 1] in "_.-"):
        first -= 1
    return "" if text[first - 1 : first] == "[" and text[first:end] == "secret" else text[first:end]


def _value_after(text: str, start: int, name: str) -> tuple[int, int] | None:
    """Start and end of the secret after a name; `None` if it is an ordinary word, a variable, or masked already."""
    certain = bool(name) and is_secret_name(name)
    if not certain and not is_uncertain_name(name):
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
        return value.span() if value is not None and random and can_be_secret(value[0], last) else None
    if last.endswith("cookie"):
        value = _COOKIES.match(text, start)
        return None if value is None else value.span()
    value = _BARE.match(text, start)
    if value is None or not can_be_secret(value[0], last):
        return None
    if not certain:
        return value.span() if looks_random(value[0]) else None
    tight = equals and last.endswith(_PASSWORDS) and text[value.end() : value.end() + 1] != "("
    plain_word = tight and len(value[0]) >= MIN_VALUE_LENGTH and value[0].isalpha() and "pass" not in value[0].lower()
    return value.span() if plain_word or _is_unusual(value[0]) else None


def _is_unusual(value: str) -> bool:
    """Neither a word nor the name of something in code."""
    return not _IDENTIFIER.fullmatch(value.rstrip("="))


def _is_credential(scheme: str, value: str) -> bool:
    if scheme == "bearer":
        mixed = len(value) >= RANDOM_LENGTH and value.lower() != value and value[1:].upper() != value[1:]
        return mixed or (len(value) >= 12 and any(character.isdigit() for character in value))
    try:
        return b":" in base64.b64decode(value[:400].rstrip("=") + "==", validate=False)
    except (binascii.Error, ValueError):
        return False


_BARE = re.compile(rf"[^\s\"'`,;&=<>{{}}()\[\]\\]{{4,{MAX_VALUE_LENGTH}}}={{0,2}}")
_QUOTED = {
    ('"', False): re.compile(rf'(?:[^"\\\r\n]|\\.){{1,{MAX_VALUE_LENGTH}}}'),
    ("'", False): re.compile(rf"(?:[^'\\\r\n]|\\.){{1,{MAX_VALUE_LENGTH}}}"),
    ('"', True): re.compile(rf'[^"\\\r\n]{{1,{MAX_VALUE_LENGTH}}}'),
    ("'", True): re.compile(rf"[^'\\\r\n]{{1,{MAX_VALUE_LENGTH}}}"),
}
"""By quote, and whether the quote is escaped because the text itself is quoted."""
_COOKIES = re.compile(rf"[\w.-]{{1,100}}=[^\r\n\"'\[\]]{{4,{MAX_VALUE_LENGTH}}}")
_SCHEME = re.compile(r"(?:bearer|basic|token|digest|apikey|negotiate|bot)[ \t]{1,4}", re.IGNORECASE)
_SCHEME_VALUE = re.compile(rf"[A-Za-z0-9+/=._~*-]{{8,{MAX_VALUE_LENGTH}}}")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.]*[!?:]?")


def _name_pattern() -> re.Pattern[str]:
    """Matches, in lower-case text, a name, the quote that closes it, and the separator between name and value."""
    names: dict[str, list[str]] = {"b": [r"(?:earer|asic)[ \t]{1,4}(?=[a-z0-9])"]}
    between = r"(?:\\?[\"'])?[ \t]{0,3}(?:=>|:=|[:=])[ \t]{0,3}"
    for name in sorted((*SECRET_NAMES, *UNCERTAIN_NAMES), key=len, reverse=True):
        names.setdefault(name[0], []).append(name[1:].replace("_", "[_-]?") + between)
    return re.compile("|".join(f"{first}(?:{'|'.join(rests)})" for first, rests in names.items()))


_NAME_AND_SEPARATOR = _name_pattern()
