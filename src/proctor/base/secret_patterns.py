"""Finds the secrets in a text: tokens by their shape, and values by the name before them.

`secret_shapes` has the shapes of tokens, `secret_names` decides which names say that a value is a secret and which
values can be one. This file knows how texts write a name and its value, in any syntax:

- an assignment: `name = value`, `"name": "value"`, `name: str = 'value'`, `?name=value`, `:name => 'value'`;
- a call or a pair: `setenv("NAME", "value")`, `['--password', 'value']`;
- words on a line: `--password value`, `password value`, `the password is value`, `| password | value |`;
- markup: `<name>value</name>`, `<add key="name" value="value"/>`;
- an object with a name and a value: `{"name": "X-Api-Key", "value": "..."}`, in either order, and its YAML;
- headers, cookies, commands with short options (`mysql -pVALUE`, `curl -u user:VALUE`), SQL, and a few files.

Quotes may be escaped any number of times (JSON inside JSON), or be written as entities or in percent-encoding.

The text is read once. From each name, only a bounded piece of the text before and after it is looked at, so that time
is linear even if the text consists of nothing but names.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from proctor.base.secret_commands import COMMAND_WORDS, LOGIN_TOKEN, passwords_in_commands
from proctor.base.secret_names import (
    CREDENTIAL_LENGTH,
    MASK_PATTERN,
    MAX_LINE_LENGTH,
    MAX_NAME_LENGTH,
    MAX_VALUE_LENGTH,
    ORDINARY_NAME,
    PASSWORD_NAMES,
    PRIVATE_KEY_PARTS,
    RANDOM_LENGTH,
    TARGET_KEYS,
    TYPED_KEYS,
    Strength,
    can_be_secret,
    fits_uncertain_name,
    is_mixed,
    is_secret_variable_name,
    is_typed_password,
    is_unusual,
    is_uuid,
    last_part,
    looks_like_credential,
    looks_random,
    name_strength,
)
from proctor.base.secret_shapes import Secret, find_shapes

__all__ = ["MASK_PATTERN", "MIN_VALUE_LENGTH", "Secret", "find_secrets_in", "is_secret_variable", "may_contain_secrets"]

MIN_VALUE_LENGTH = 8
"""Shorter values of environment variables occur in ordinary words."""
MAX_WORD_LENGTH = 20
"""A word of letters alone may be a token from this length on; shorter ones are ordinary, such as `ContextRecall`."""
MAX_OBJECT_LENGTH = 600
"""How far apart the name and the value of an object may be."""

_HINTS = tuple(
    """pass pwd pw secret token key auth cookie credential bearer basic connection kennwort contrase senha
    wachtwoord lösenord hasło heslo parola şifre пароль 密码 パスワード 비밀번호 المرور khẩu schlüssel clé clave
    chave jwt identified sig code pin psk sess sid _pat mnemonic phrase words appid user, user;""".split()
)
"""One of these is in every name of a secret and in every scheme of authorization."""


def find_secrets_in(text: str) -> Iterator[Secret]:
    """The secrets that can be recognized from the text alone; they may overlap."""
    yield from _find_plain(text)
    yield from _find_encoded(text)


def may_contain_secrets(text: str) -> bool:
    """Whether a text is worth a closer look, which few are.

    Vendors' tokens are words of 16 characters or more, with digits or signs unless they are longer still. All other
    secrets follow a name.
    """
    for word in text.split():
        if len(word) >= RANDOM_LENGTH and (len(word) >= MAX_WORD_LENGTH or not word.isalpha()):
            return True
    return _has_hint(text, text.lower())


def _has_hint(text: str, lowered: str) -> bool:
    """Whether a text has a word that comes before a secret."""
    return any(hint in lowered for hint in _HINTS) or any(command in text for command in COMMAND_WORDS)


def is_secret_variable(name: str, value: str) -> bool:
    """Whether an environment variable, as in a `.env` file, is a secret by its name or by the shape of its value."""
    if name in ("PWD", "OLDPWD"):
        return False
    if is_secret_variable_name(name) or next(find_shapes(value), None) is not None:
        return True
    return looks_random(value) and not ORDINARY_NAME.search(last_part(name))


def _find_plain(text: str) -> Iterator[Secret]:
    yield from find_shapes(text)
    lowered = _lower(text)
    if _has_hint(text, lowered):
        found = (
            *_after_names(text, lowered),
            *passwords_in_commands(text),
            *_in_manifests(text),
            *_in_inserts(text, lowered),
        )
        for start, end in found:
            yield Secret("", start, end, True)
        yield from (Secret("", *match.span(1), True) for match in LOGIN_TOKEN.finditer(text))
        for codes in _CODES.finditer(lowered) if "codes" in lowered else ():
            yield Secret("", codes.start(1), codes.start(1) + len(codes[1].rstrip()), True)
    if "kty" in text:
        yield from (Secret("", *match.span(1), True) for match in _PRIVATE_KEY_PART.finditer(text))
    yield from (Secret("", *match.span(1), True) for match in _PGPASS.finditer(text) if ":" in text)
    yield from (Secret("", *match.span(), True) for match in _LDAP_HASH.finditer(text))
    yield from (Secret("", *match.span(1), True) for match in _SMTP_PASSWORD.finditer(text))
    for number in _NUMBER_OF_WORDS.finditer(lowered) if " word" in lowered else ():
        if (words := _WALLET_WORDS.match(text, number.end())) is not None:
            yield Secret("", *words.span(1), True)
    for match in _INVALID_INPUT.finditer(text) if "input_value='" in text else ():
        if name_strength(match[1]) is not Strength.NONE and looks_like_credential(match[2]):
            yield Secret("", *match.span(2), True)


_LDAP_HASH = re.compile(r"\{(?:S?SHA(?:256|512)?|S?MD5|CRYPT)\}[\w+/=.$-]{16,200}")
"""How a directory stores a password."""
_NUMBER_OF_WORDS = re.compile(r"\b(?:12|15|18|21|24|twelve|twenty-four) words?")
_SMTP_PASSWORD = re.compile(r"334 UGFzc3dvcmQ6\s{1,4}(?:C:\s?)?([A-Za-z0-9+/]{4,200}={0,2})")
"""What a mail client answers when the server asks for the password, in Base64."""
_INVALID_INPUT = re.compile(r"(?m)^([\w.]{1,60})\n {2}[^\n]{0,300}?input_value='([^'\n]{4,200})")
"""How Pydantic reports a value that it refuses, below the name of its field."""


def _lower(text: str) -> str:
    """The text in lower case, with all characters in their places."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(character.lower() if character.isascii() else character for character in text)


_BASE64_WORD = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,8192}={0,2}(?![A-Za-z0-9+/_-])")


def _find_encoded(text: str) -> Iterator[Secret]:
    """Words that are the Base64 form of a text with a secret in it. Few words decode to a text at all."""
    for match in _BASE64_WORD.finditer(text):
        try:
            decoded = base64.b64decode(match[0].rstrip("=").replace("-", "+").replace("_", "/") + "==")
            inner = decoded.decode("ascii")
        except (binascii.Error, ValueError):
            continue
        is_text = inner.replace("\n", "").replace("\t", "").replace("\r", "").isprintable()
        if is_text and next(_find_plain(inner), None) is not None:
            yield Secret("", *match.span(), True)


# Names

_NAME = re.compile(
    r"pass(?:[ _-]?(?:word|phrase|code)|wd|wort)?|p(?:wd|w)(?![a-z])|secret|token|key|auth|cookie|credential"
    r"|connection[ _-]?string|kennwort|contrase[ñn]a|senha|mot ?de ?passe|wachtwoord|lösenord|hasło|heslo"
    r"|parola|şifre|пароль|密码|パスワード|비밀번호|كلمة المرور|mật khẩu|samlresponse|(?<=[?&])appid"
    r"|(?<=auth_|d_in_|once_)salt|schlüssel|clé api|clave(?: (?:de (?:acceso|api)|secreta|api))?"
    r"|chave(?: (?:de (?:acesso|api)|secreta))?"
    r"|jwt|bearer|basic|sig|code|pin(?![a-z])|psk|sess|sid(?![a-z])|(?<=_)pat(?![a-z])|mnemonic"
    r"|(?:seed|recovery)[ _-]phrase|identified(?: with \w{1,40})? by"
)
_SPACED_BEGINNING = re.compile(
    r"(?:api|access|secret|auth|private|refresh|bearer|account|master|unseal|recovery|signing|admin|setup"
    r"|licen[cs]e)[ ]"
    r"(?=(?:key|token)\Z)"
)


def _after_names(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    position = table_end = 0
    while (match := _NAME.search(lowered, position)) is not None:
        start, end = _whole_name(text, *match.span())
        position = max(match.end(), end)
        name = text[start:end].strip(".-")
        if match[0] in ("key", "token") and start == match.start():
            spaced = _SPACED_BEGINNING.search(lowered, max(0, start - 9), end)
            if spaced is not None and spaced.end() == start:
                start, name = spaced.start(), lowered[spaced.start() : end]
        if text[start - 1 : start] == "[" and text.startswith("secret: ", start):  # a mask
            mask = MASK_PATTERN.match(text, start - 1)
            position = position if mask is None else mask.end()
            continue
        for span in _values_of(text, start, end, name):
            yield span
            position = max(position, span[1])
        if start >= table_end and (strength := name_strength(name)) is not Strength.NONE:
            cells, table_end = _column(text, start, end)
            yield from (cell for cell in cells if strength is Strength.CERTAIN or looks_random(text[slice(*cell)]))


def _whole_name(text: str, start: int, end: int) -> tuple[int, int]:
    """The name around a word of it: `x-api-key_2`. `\\n` before a name is an escaped line break, not its letter."""
    first, last = start, end
    while first > 0 and end - first < MAX_NAME_LENGTH and (text[first - 1].isalnum() or text[first - 1] in "_.-"):
        first -= 1
    while last < len(text) and last - end < MAX_NAME_LENGTH and (text[last].isalnum() or text[last] in "_.-"):
        last += 1
    if text[first - 1 : first] == "\\" and text[first] in "nrt" and first < start:
        first += 1
    if text[first - 1 : first] == "\\" and text[first : first + 5] in ("u0022", "u0027") and first + 5 <= start:
        first += 5
    if text[first - 1 : first] == "%" and first + 2 <= start and re.match("[0-9A-Fa-f]{2}", text[first : first + 2]):
        first += 2
    return first, last


# Separators and values

_QUOTE = r"(?:\\{0,8}[\"'`]|&(?:quot|apos|\#0{0,3}3[49]|\#x0{0,3}2[27]);|\\{1,4}u002[27]|%(?:25)?2[27])"
_OPENING = re.compile(rf"(?:[bBrRuUfFN@$]{{1,2}}#{{0,3}})?({_QUOTE})(?:\\?[\"']{{2}})?")
_CLOSING = rf"(?:{_QUOTE}|\*\*|__|[\])]){{0,3}}"
_TYPE = r"(?:(?:&(?:'\w{1,20} )?)?[A-Za-z_][\w.]{0,30}(?:\[[\w., \[\]|]{0,30}\])?(?:[ ]?\|[ ]?None)?\??)"
_ASSIGNMENT = re.compile(
    rf"(?P<close>{_CLOSING})(?:[ ][0-9]{{1,2}}(?=:)|\[[0-9]{{0,5}}\](?=\s?=))?"
    rf"(?:[ \t]{{0,20}}:[ \t]{{0,3}}{_TYPE}[ \t]{{0,3}}=(?!=)"
    rf"|[ \t]{{1,3}}(?:string|str|String|text|char\*?)[ \t]{{0,3}}:?="
    rf"|[ \t]{{0,20}}(?:={{2,3}}|!={{1,2}}|=>|[:+]=|\|\|=|\?{{1,2}}=|->|<-|→|[:=：]|%(?:25)?3[aAdD]"
    rf"|\\{{1,4}}u003[aAdD]))"
    rf"(?:\*\*)?(?:\\{{1,4}}[nrt]|\s|%20|\+(?=[\"'])){{0,20}}"
)
_PAIR = re.compile(
    rf"(?:\]?{_QUOTE},\s{{0,20}}|\]?{_QUOTE}\)\.(?:type|fill|send_?[kK]eys|set_?[vV]alue|val)\(\s{{0,3}}|\(\s{{0,3}})"
    rf"(?={_QUOTE}|b[\"'])"
)
_RECIPIENT = r"(?:for|of|to|für|de|du|des|del|do|da|pour|para|per|van|от|для)"
_IS = re.compile(
    rf"(?P<close>(?:\*\*|[\"'`])?)[ \t]{{1,3}}"
    rf"(?:{_RECIPIENT} (?:[\w.@'/-]{{1,40}} ){{0,5}}?[\w.@'/-]{{1,40}}:[ \t]{{1,3}}"
    rf"|(?:{_RECIPIENT} (?:[\w.@'/-]{{1,40}} ){{1,6}}?)?"
    r"(?:(?:(?:(?:has been|was|is) )?(?:set|changed|reset) to"
    r"|(?:is|was|will be|ist|lautet|est|es|è|é|är|jest|to)(?: (?:now|still|currently|just|simply))?)"
    r"(?:[ \t]{0,2}:)?|[–—-])[ \t]{1,3})"
)
"""`password is ...`, `password for kim: ...`."""
_NEXT_LINE = re.compile(r"[ \t]{0,5}(?:\r?\n[ \t]{0,8}){1,3}(\S{16,400})[ \t]{0,5}(?=\r?\n|\Z)")
"""What is between a name as a heading and its value alone on a line."""
_SPACE = re.compile(r"(?P<close>[\"'`]?)(?:[ \t]{0,20}\|[ \t]{0,20}|[ \t]{1,20}(?:[05789] )?|\\t)")
"""What is between a name and its value on a line; routers write a digit there for the kind of the password."""
_TAG_BEGINNING = re.compile(r"(?:<|&lt;)(?:[\w-]{1,20}:)?\Z")
_NAME_ATTRIBUTE = re.compile(r"(?i)(?:name|key|id)\s?=\s?[\"']\Z|<(?:key|name|th|td|dt)>\s{0,10}\Z")
_TAG_END = re.compile(r"(?:\s[^<>]{0,200})?(?:>|&gt;)\s{0,40}(?:<!\[CDATA\[)?\s{0,40}")
_NAMED_TAG = re.compile(
    rf"{_QUOTE}[^<>]{{0,100}}>\s{{0,40}}(?:<(?i:value|string)>\s{{0,40}})?(?:<!\[CDATA\[)?\s{{0,40}}"
    r"|\s{0,10}</(?i:key|name|th|td|dt)>\s{0,40}<(?i:string|value|td|dd)>"
)
_TAG_TEXT = re.compile(rf"(?:[^<>&\]]|&(?!lt;)){{1,{MAX_VALUE_LENGTH}}}(?=</|\]\]>|&lt;/)")
_NODE_PROPERTIES = re.compile(r"(?:(?:&\w{1,40}|!!\w{1,20})[ ]{1,3}){1,2}")
"""The name and the type that YAML allows before a value."""
_LUA_STRING = re.compile(r"\[\[([^\[\]\r\n\"']{4,400})\]\]")
_LINE_END = r"(?:\r?\n|(?:\\{1,4}r)?\\{1,4}n)"
_FORM_PART = re.compile(rf"{_QUOTE}(?:{_LINE_END}Content-[\w-]{{1,40}}:[^\r\n\\]{{0,100}}){{0,3}}{_LINE_END}{{2}}")
"""What is between the name of a field and its value in a form that is sent in parts."""
_FORM_VALUE = re.compile(rf"[^\r\n\\]{{1,{MAX_VALUE_LENGTH}}}")
_WRAPPER = re.compile(
    r"(?:new )?(?:SecretStr|SecretBytes|Secret|PASSWORD|String::from|String|Some|bytes|str|b64decode|base64\.b64decode)"
    r"\(\s{0,3}"
)
_BARE = re.compile(
    rf"[^\s\"'`,;&=<>{{}}()\[\]\\|]{{4,{MAX_VALUE_LENGTH}}}(?:={{1,2}}[-.][^\s\"'`,;&=<>{{}}()\[\]\\|]{{4,400}})?={{0,2}}"
)
_SHELL_WORD = re.compile(rf"[^\s\"'`<>()\[\]\\|;]{{4,{MAX_VALUE_LENGTH}}}")
_BLOCK = re.compile(
    r"[|>][+-]?[0-9]?[ \t]{0,10}\r?\n([ \t]{1,40}\S[^\r\n]{0,4000}(?:\r?\n[ \t]{1,40}\S[^\r\n]{0,4000}){0,100})"
)
_FALLBACK = re.compile(
    r"[^\n;\"'`]{1,120}(?:[\"'`][\w.-]{1,60}[\"'`][^\n;\"'`]{0,20})?(?:\?\?|\|\||\?:| or )\s{0,3}(?=[\"'`])"
)
"""What is before the value that code takes if a variable is not set: `process.env.KEY || "..."`."""
_ODBC_VALUE = re.compile(r"\{([^{}\r\n]{4,200})\}(?=;|\s|[\"']|\Z)")
_ANY_QUOTE = re.compile(_QUOTE)
_COMMA = re.compile(r"[\s,]{0,20}")
_BLANK = re.compile(r"[ \t]{1,4}")
_LINE = re.compile(rf"[^\r\n]{{1,{MAX_VALUE_LENGTH}}}")
_SIGN_IN_WORD = re.compile(r"\w[@#$%^&*+!]\w")
_SQL = re.compile(r"(?i)\b(?:create|alter|set|grant)\b")
_SQL_BLANK = re.compile(r"\s{1,10}(?:PASSWORD\s{1,4})?")
_ENCODED_QUOTE_END = re.compile(r"%(?:25)?2[27]|&(?:quot|apos|#)|\\{1,4}u002[27]|[\s]")


def _values_of(text: str, start: int, end: int, name: str) -> Iterator[tuple[int, int]]:
    """Start and end of the secrets that belong to the name at `start`; none if the value is an ordinary word."""
    lowered = name.lower()
    if lowered in ("bearer", "basic"):
        yield from _scheme_value(text, end, lowered)
        return
    if lowered.endswith(" by"):  # SQL: IDENTIFIED BY 'x'
        yield from _quoted_after(text, end, name)
        return
    strength = _strength_here(text, start, end, name)
    if strength is Strength.NONE:
        return
    last = last_part(name)
    if last.endswith("authorization"):
        yield from list(_authorization(text, start, end)) or _in_object(text, start, end, name, strength)
        return
    if last.endswith("cookie"):
        yield from _cookies(text, end)
        return
    if last.endswith(("phrase", "mnemonic")) and (words := _WALLET_WORDS.match(text, end)) is not None:
        yield words.span(1)
        return
    direct = list(_directly_after(text, start, end, name, strength)) or list(_before_its_name(text, start, strength))
    yield from direct or _in_object(text, start, end, name, strength)


_WALLET_WORDS = re.compile(
    r"[\"'`]?(?: (?:is|was))?\s{0,3}[:=]\s{0,3}[\"'`]?"
    r"((?:(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}[ ,\n]{1,2}){11,23}(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8})"
)
"""The 12 to 24 words from which a wallet derives its key."""
_SESSION_COOKIES = ("jsessionid", "phpsessid", "asp.net_sessionid", "aspsessionid", "connect.sid", "laravel_session")
_NEXT_COOKIE = re.compile(r"=[^\s=;,\"']{8,400}; [\w-]{1,60}=")
_ARN = re.compile(r"\barn:[\w:-]{1,70}:\Z")
"""What is before the kind of a resource of AWS: `arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db`."""
_QUERY_NAMES = ("key", "code", "sig", "signature", "appid")


def _strength_here(text: str, start: int, end: int, name: str) -> Strength:
    """The strength of a name in its place.

    In the query of an address, `key`, `code` and `sig` are names of secrets, and so is `session` in a list of cookies.
    Agents call their conversations sessions too; only the cookies of web frameworks are secrets everywhere.
    """
    if name.lower() in _SESSION_COOKIES:
        return Strength.UNCERTAIN
    if text[start - 1 : start] == ":" and _ARN.search(text, max(0, start - 80), start):
        return Strength.NONE
    if last_part(name).replace("_", "").endswith(("session", "sessionid", "sessid", "sid")):
        in_cookies = "cookies" in text[max(0, start - MAX_LINE_LENGTH) : start] or _NEXT_COOKIE.match(text, end)
        return Strength.UNCERTAIN if in_cookies else Strength.NONE
    if text[max(0, start - 1) : start] in ("?", "&", "#") and name.lower() in _QUERY_NAMES:
        return Strength.UNCERTAIN
    return Strength.NONE if name.lower() in ("sig", "signature") else name_strength(name)


_BEFORE_ITS_NAME = re.compile(
    r"(?<![^\s\"'`])([^\s\"'`]{6,200})[\"'`]? (?:is|as) (?:(?:the|my|your|his|her|their|our|its|an?) )?"
    r"(?:[a-z]{1,20} ){0,2}\Z"
)
"""A value and the words between it and its name: `log in with ... as the admin password`."""


def _before_its_name(text: str, start: int, strength: Strength) -> Iterator[tuple[int, int]]:
    before = text[max(0, start - 60) : start]
    if strength is not Strength.CERTAIN or (" is " not in before and " as " not in before):
        return
    value = _BEFORE_ITS_NAME.search(text, max(0, start - 280), start)
    if value is not None and looks_like_credential(value[1], 6) and can_be_secret(value[1], ""):
        yield value.span(1)


def _directly_after(text: str, start: int, end: int, name: str, strength: Strength) -> Iterator[tuple[int, int]]:
    before = text[max(0, start - 30) : start]
    if _TAG_BEGINNING.search(before):
        tag = _TAG_END.match(text, end)
        if tag is not None:
            yield from _accept(text, _TAG_TEXT.match(text, tag.end()), name, strength, quoted=True)
            return
    if _NAME_ATTRIBUTE.search(before):
        tag = _NAMED_TAG.match(text, end)
        if tag is not None and text[tag.end() - 1] != "/":
            yield from _accept(text, _TAG_TEXT.match(text, tag.end()), name, strength, quoted=True)
        if (part := _FORM_PART.match(text, end)) is not None:
            yield from _accept(text, _FORM_VALUE.match(text, part.end()), name, strength, quoted=True)
    if (match := _ASSIGNMENT.match(text, end)) is not None:
        is_token_option = text[start] == "-" and last_part(name).endswith("token")
        word = _BARE.match(text, match.end()) if is_token_option else None
        if word is not None and is_uuid(word[0]):
            yield word.span()
        else:
            yield from _assigned(text, match.end(), name, strength, equals="=" in match[0] or "3" in match[0])
    elif (match := _PAIR.match(text, end)) is not None:
        value = _quoted(text, match.end())
        if value is not None and _is_given_to(text[slice(*value)], name, is_option=text[start] == "-"):
            yield value
    elif (alone := _NEXT_LINE.match(text, end)) is not None and looks_random(alone[1]):
        yield alone.span(1)
    elif (match := _IS.match(text, end) or _SPACE.match(text, end)) is not None:
        yield from _on_the_line(text, match, name, strength, is_option=text[start] == "-" or before.endswith("/"))


def _is_given_to(value: str, name: str, *, is_option: bool) -> bool:
    """Whether the item after a name in a list or a call is its value, and not the next name."""
    if name_strength(value) is not Strength.NONE or not can_be_secret(value, name):
        return False
    if name_strength(name) is Strength.CERTAIN and len(value) >= 6 and is_mixed(value):
        return True
    return looks_like_credential(value) or (is_option and is_unusual(value))


def _assigned(text: str, position: int, name: str, strength: Strength, *, equals: bool) -> Iterator[tuple[int, int]]:
    block = _BLOCK.match(text, position)
    if block is not None:
        yield from _accept(text, block, name, strength, quoted=True, group=1)
        return
    properties = _NODE_PROPERTIES.match(text, position)
    position = position if properties is None else properties.end()
    wrapper = _WRAPPER.match(text, position)
    position = position if wrapper is None else wrapper.end()
    if (long_string := _LUA_STRING.match(text, position)) is not None:
        yield from _accept(text, long_string, name, strength, quoted=True, group=1)
        return
    if text[position : position + 1] in ("[", "("):
        yield from _items(text, position + 1, name, strength)
        return
    value = _quoted(text, position)
    if value is not None:
        scheme = _SCHEME.match(text, *value)
        value = value if scheme is None else (scheme.end(), value[1])
        if _holds(text, value, name, strength, quoted=True):
            yield value
        return
    if _OPENING.match(text, position) is not None:
        return
    braces = _ODBC_VALUE.match(text, position) if equals else None
    if braces is not None and "Driver=" in text[max(0, position - MAX_LINE_LENGTH) : position]:
        yield braces.span(1)
        return
    bare = _BARE.match(text, position)
    if bare is None:
        return
    span = _without_encoded_quote(text, bare)
    if _holds(text, span, name, strength, quoted=False, equals=equals):
        yield span
    elif (fallback := _FALLBACK.match(text, position)) is not None:
        value = _quoted(text, fallback.end())
        if value is not None and is_mixed(text[slice(*value)]) and _holds(text, value, name, strength, quoted=True):
            yield value


def _items(text: str, position: int, name: str, strength: Strength) -> Iterator[tuple[int, int]]:
    """The texts of a list, or of a tuple such as `auth=("user", "value")`."""
    for _ in range(50):
        blank = _COMMA.match(text, position)
        value = _quoted(text, position if blank is None else blank.end())
        if value is None:
            return
        if _holds(text, value, name, strength, quoted=True):
            yield value
        closing = _ANY_QUOTE.match(text, value[1])
        position = value[1] if closing is None else closing.end()


def _on_the_line(
    text: str, match: re.Match[str], name: str, strength: Strength, *, is_option: bool
) -> Iterator[tuple[int, int]]:
    value = _quoted(text, match.end())
    quoted = value is not None
    if value is None:
        word = _SHELL_WORD.match(text, match.end())
        if word is None:
            return
        value = word.start(), word.start() + len(word[0].rstrip(".,;:!?*_"))
    content = text[slice(*value)]
    if not can_be_secret(content, name) or content.startswith("-"):
        return
    is_login = name.lower() == "password" and _LOGIN.search(
        text, max(0, match.start() - MAX_LINE_LENGTH), match.start()
    )
    is_sentence = match.re is _IS and (is_mixed(content) or content.isdigit()) and len(content) >= 6
    if strength is Strength.CERTAIN and is_sentence:
        yield value
        return
    is_phrase = name.lower().endswith("phrase") and content.count(" ") >= 3
    if (
        strength is Strength.CERTAIN
        and quoted
        and (is_mixed(content) or is_phrase or (name.isupper() and _is_sql(text, match.start())))
    ):
        yield value
        return
    if (is_option or is_login) and strength is Strength.CERTAIN and is_unusual(content):
        yield value
        return
    shortest = 6 if strength is Strength.CERTAIN else CREDENTIAL_LENGTH
    if is_uuid(content) and (strength is Strength.CERTAIN or (is_option and last_part(name).endswith("token"))):
        yield value
        return
    if not looks_like_credential(content, shortest) and not _SIGN_IN_WORD.search(content):
        return
    if strength is Strength.CERTAIN or is_option or fits_uncertain_name(content, name):
        yield value


_LOGIN = re.compile(r"(?:machine|default)\s{1,10}(?:\S{1,100}\s{1,10})?(?:login|account)\s")
"""What comes before the password in a `.netrc` file."""


def _is_sql(text: str, position: int) -> bool:
    return _SQL.search(text, max(0, position - MAX_LINE_LENGTH), position) is not None


def _quoted_after(text: str, end: int, name: str) -> Iterator[tuple[int, int]]:
    blank = _SQL_BLANK.match(text, end)
    value = None if blank is None else _quoted(text, blank.end())
    if value is not None and can_be_secret(text[slice(*value)], name):
        yield value


def _quoted(text: str, position: int) -> tuple[int, int] | None:
    """Start and end of what is in the quotes at `position`, however they are escaped; `None` if there are none."""
    opening = _OPENING.match(text, position)
    if opening is None:
        return None
    start, quote = opening.end(), opening[1]
    sign = quote.lstrip("\\")
    depth = len(quote) - len(sign)
    if sign not in ('"', "'", "`"):  # encoded: ends where the same code is written again
        end = text.find(quote, start, start + MAX_VALUE_LENGTH)
        return (start, end) if end > start else None
    end = start - 1
    limit = min(len(text), start + MAX_VALUE_LENGTH)
    while True:
        end = text.find(sign, end + 1, limit)
        if end < 0:
            return _until_line_end(text, start, limit)
        escapes = _backslashes_before(text, end, start)
        if escapes == depth or (depth > 0 and escapes < depth) or (depth == 0 and escapes % 2 == 0):
            end -= escapes if depth else 0
            break
    return (start, end) if end > start and "\n" not in text[start:end] else None


def _until_line_end(text: str, start: int, limit: int) -> tuple[int, int] | None:
    """A value whose closing quote is missing, as in a text that was cut off."""
    line = _LINE.match(text, start, limit)
    return None if line is None else line.span()


def _backslashes_before(text: str, position: int, start: int) -> int:
    count = 0
    while position - count > start and text[position - count - 1] == "\\" and count < 9:
        count += 1
    return count


def _without_encoded_quote(text: str, match: re.Match[str]) -> tuple[int, int]:
    """The span of a word, which ends before an encoded quote: `...%22%7D`."""
    closing = _ENCODED_QUOTE_END.search(text, match.start(), match.end())
    return match.start(), match.end() if closing is None else closing.start()


def _accept(
    text: str, match: re.Match[str] | None, name: str, strength: Strength, *, quoted: bool, group: int = 0
) -> Iterator[tuple[int, int]]:
    if match is None:
        return
    start, end = match.span(group)
    content = match[group]
    span = start + len(content) - len(content.lstrip()), end - (len(content) - len(content.rstrip()))
    if span[1] > span[0] and _holds(text, span, name, strength, quoted=quoted):
        yield span


def _holds(
    text: str, span: tuple[int, int], name: str, strength: Strength, *, quoted: bool, equals: bool = False
) -> bool:
    """Whether the text in a span is a secret after this name."""
    value = text[slice(*span)]
    if not can_be_secret(value, last_part(name)):
        return False
    if value.isidentifier() and not any(c.isdigit() for c in value) and name_strength(value) is Strength.CERTAIN:
        return False  # `password=password`, `{"name": "password"}`
    if strength is Strength.UNCERTAIN:
        return fits_uncertain_name(value, name)
    if quoted:
        return True
    tight = equals and last_part(name).endswith(PASSWORD_NAMES) and text[span[1] : span[1] + 1] != "("
    plain_word = tight and len(value) >= MIN_VALUE_LENGTH and value.isalpha() and "pass" not in value.lower()
    return plain_word or (is_unusual(value) and text[span[1] : span[1] + 1] not in ("(", "["))


# Tables

_COLUMN_NAME = re.compile(r"[\w .:/#-]{0,40}")
_TABLE_RULE = re.compile(r"[|:\s-]*")


def _column(text: str, start: int, end: int) -> tuple[list[tuple[int, int]], int]:
    """The cells below a name that is the heading of a column, and where that table ends."""
    first = text.rfind("\n", max(0, start - MAX_LINE_LENGTH), start) + 1
    last = text.find("\n", end, end + MAX_LINE_LENGTH)
    heading = text[first : max(first, last)]
    delimiter = next((sign for sign in ("|", "\t", ";", ",") if sign in heading), "")
    names = heading.split(delimiter) if delimiter else []
    column = text.count(delimiter, first, start) if delimiter else 0
    if not names or not all(_COLUMN_NAME.fullmatch(name.strip(" \r\"'*")) for name in names):
        return [], 0
    if names[column].strip(" \r\"'*") != text[start:end]:
        return [], 0
    cells: list[tuple[int, int]] = []
    position = last + 1
    while position < len(text):
        line_end = text.find("\n", position)
        line_end = len(text) if line_end < 0 else line_end
        values = text[position:line_end].split(delimiter)
        if len(values) != len(names):
            break
        cell = values[column]
        content = cell.strip(" \r\"'*`")
        begin = position + sum(len(value) + 1 for value in values[:column]) + cell.find(content)
        if not _TABLE_RULE.fullmatch(cell) and can_be_secret(content, "password") and is_unusual(content):
            cells.append((begin, begin + len(content)))
        position = line_end + 1
    return cells, position


_INSERT = re.compile(
    r"insert\s{1,4}(?:or \w{1,10} )?into\s{1,4}[^\s()]{1,80}\s{0,4}\(([^()]{1,600})\)\s{0,4}values\s{0,4}"
)
_SQL_VALUE = re.compile(r"\s{0,4}(?:'((?:[^'\\]|\\.|''){0,400})'|[^,'()]{0,60})\s{0,4}[,)]")
_ROW_BEGINNING = re.compile(r"[\s,]{0,4}\(")
MAX_SQL_ROWS = 100


def _in_inserts(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """The values of `insert into users (login, password) values ('kim', '...')`."""
    for insert in _INSERT.finditer(lowered) if "insert" in lowered else ():
        names = [name.strip(" \t\r\n\"'`[]\\") for name in insert[1].split(",")]
        position = insert.end()
        for _ in range(MAX_SQL_ROWS):
            row = _ROW_BEGINNING.match(text, position)
            if row is None:
                break
            position = row.end()
            for name in names:
                value = _SQL_VALUE.match(text, position)
                if value is None:
                    break
                strength = name_strength(name)
                if value[1] and strength is not Strength.NONE:
                    yield from _accept(text, value, name, strength, quoted=True, group=1)
                position = value.end()


# Objects that have a name and a value

_BEFORE_NAME = re.compile(
    rf"(?i)(?:name|key|header|field|parameter|variable|var|id|label|property|option)(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}"
    rf"(?:{_QUOTE})?(?:/?[\w.-]{{1,40}}/){{0,6}}\Z"
)
_VALUE_KEY = re.compile(
    rf"(?i)(?<![a-z])(?:\w{{0,20}}[_-]?)?(?:value|val|content|data)(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}"
)


def _in_object(text: str, start: int, end: int, name: str, strength: Strength) -> Iterator[tuple[int, int]]:
    """The value of `{"name": "X-Api-Key", "value": "..."}`, in either order, as data, in YAML or as attributes."""
    before = text[max(0, start - 80) : start]
    if _TARGET.search(before) and (typed := _TYPED.match(text, end)) is not None:
        value = _quoted(text, typed.end())
        if value is not None and is_typed_password(text[slice(*value)]) and can_be_secret(text[slice(*value)], name):
            yield value
            return
    inner = (_HCL_DEFAULT if _HCL_VARIABLE.search(before) else _INNER_VALUE).match(text, end)
    if inner is not None:
        yield from _assigned(text, inner.end(), name, strength, equals=False)
        return
    if _BEFORE_NAME.search(before) is None:
        return
    after = _OBJECT_END.search(text, end, end + MAX_OBJECT_LENGTH)
    limit = min(len(text), end + MAX_OBJECT_LENGTH) if after is None else after.start()
    key = _VALUE_KEY.search(text, end, limit)
    if key is None:
        first = max(0, start - MAX_OBJECT_LENGTH)
        beginning = max((text.rfind(sign, first, start) for sign in ("{", "<", "}")), default=-1)
        keys = list(_VALUE_KEY.finditer(text, max(first, beginning), start))
        key = keys[-1] if keys else None
    if key is not None:
        yield from _assigned(text, key.end(), name, strength, equals=False)


_TARGET = re.compile(
    rf"(?i)(?:{'|'.join(TARGET_KEYS)})(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}"
    rf"{_QUOTE}[^\n{{}}]{{0,40}}\Z"
)
_TYPED = re.compile(rf"[^\n{{}}]{{0,120}}?(?<![a-z])(?:{'|'.join(TYPED_KEYS)})(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}")
"""What is between the field of a page and the text that was typed into it."""
_OBJECT_END = re.compile(r"[{}<>]|\n\s*- ")
_INNER_VALUE = re.compile(
    rf"(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}\{{[^{{}}]{{0,300}}?(?<![a-z_])value(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}"
)
"""Where the value of `"password": {"sensitive": true, "value": "..."}` begins."""
_HCL_VARIABLE = re.compile(r"\bvariable\s{1,4}\"\Z")
_HCL_DEFAULT = re.compile(r"\"\s{0,4}\{[^{}]{0,600}?\bdefault\s{0,20}=\s{0,4}")


# Headers

_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|negotiate|bot|ssws|key|splunk)[ \t]{1,4}(?:token=)?", re.I)
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z-]{2,20}[ \t]{1,4}(?:token=)?")
"""A word before a credential that no standard knows, such as `GenieKey`."""
_PARAMETERS = re.compile(r"(?:digest|hawk|oauth|signature|aws4-hmac-sha256|sharedkey\w{0,4}|vapid|mac)[ \t]{1,4}", re.I)
_HEADER_SEPARATOR = re.compile(rf"(?:{_QUOTE}|\])?\s{{0,3}}(?:[:=,]|=>|%3[aA])\s{{0,3}}(?:b?(?P<open>{_QUOTE}))?")
_SCHEME_VALUE = re.compile(rf"[A-Za-z0-9+/=._~*-]{{8,{MAX_VALUE_LENGTH}}}")
_COOKIE = re.compile(
    r"[ \t]{0,4}(?P<name>[^\s=;,\"'\[\]]{1,100})=(?P<value>[^\s;\"'\[\]\\]{0,4096})(?:;|\Z|(?=[\s\"'\\]))"
)
_COOKIE_ATTRIBUTES = ("path", "domain", "max-age", "expires", "samesite", "version", "comment", "priority")


def _authorization(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    separator = _HEADER_SEPARATOR.match(text, end)
    if separator is None:
        return
    position = separator.end()
    parameters = _PARAMETERS.match(text, position)
    if parameters is not None:
        quote = separator["open"] or (text[start - 1] if text[start - 1 : start] in ("'", '"') else "")
        line = _LINE.match(text, parameters.end())
        if line is not None:
            cut = line[0].find(quote) if quote else -1
            yield line.start(), line.end() if cut <= 0 else line.start() + cut
        return
    scheme = _SCHEME.match(text, position)
    value = _BARE.match(text, position if scheme is None else scheme.end())
    if scheme is None and (other := _OTHER_SCHEME.match(text, position)) is not None:
        credential = _BARE.match(text, other.end())
        if credential is not None and len(credential[0]) >= RANDOM_LENGTH and is_mixed(credential[0]):
            value = credential
    if value is None or not can_be_secret(value[0], "authorization"):
        return
    is_http_scheme = scheme is not None and scheme[0].strip().lower() in ("bearer", "basic")
    if is_http_scheme or is_unusual(value[0]):
        yield value.span()


def _scheme_value(text: str, end: int, scheme: str) -> Iterator[tuple[int, int]]:
    blank = _BLANK.match(text, end)
    value = None if blank is None else _SCHEME_VALUE.match(text, blank.end())
    if value is not None and _is_credential(scheme, value[0].rstrip(".")):
        yield value.start(), value.start() + len(value[0].rstrip("."))


def _is_credential(scheme: str, value: str) -> bool:
    if scheme == "bearer":
        mixed = len(value) >= RANDOM_LENGTH and value.lower() != value and value[1:].upper() != value[1:]
        return mixed or (len(value) >= 12 and any(character.isdigit() for character in value))
    try:
        return b":" in base64.b64decode(value[:400].rstrip("=") + "==", validate=False)
    except (binascii.Error, ValueError):
        return False


def _cookies(text: str, end: int) -> Iterator[tuple[int, int]]:
    """The values of cookies that are more than a word: `theme=dark` stays."""
    separator = _HEADER_SEPARATOR.match(text, end)
    position = end if separator is None else separator.end()
    for _ in range(100 if separator is not None else 0):
        match = _COOKIE.match(text, position)
        if match is None:
            return
        value = match["value"]
        is_value = match["name"].lower() not in _COOKIE_ATTRIBUTES and len(value) >= 4 and not value.isdigit()
        if is_value and is_unusual(value) and can_be_secret(value, match["name"]):
            yield match.span("value")
        position = match.end()


# Commands, and files with a form of their own

_CODES = re.compile(
    r"(?:backup|recovery|unlock)[ _-]codes[^\n:=]{0,40}[:=]\s{0,10}"
    r"((?:(?:[-*] )?(?=[a-z-]{0,19}[0-9])[a-z0-9-]{6,24}[\s,;]{0,4}){1,20})"
)
"""The codes that replace a second factor."""
_PRIVATE_KEY_PART = re.compile(
    rf"(?<=[\"'])(?:{'|'.join(PRIVATE_KEY_PARTS)})(?:{_QUOTE})\s{{0,3}}:\s{{0,3}}{_QUOTE}([\w-]{{{RANDOM_LENGTH},2000}})"
)
"""A private number of a JSON Web Key."""
_PGPASS = re.compile(
    r"(?m)(?:^|(?<=[\s\"']))(?:[A-Za-z][\w.-]{0,80}|\*|[0-9]{1,3}(?:\.[0-9]{1,3}){3}):(?:[0-9]{4,5}|\*):[\w*.-]{1,60}:[A-Za-z*][\w.@-]{0,60}:"
    r"([^\s:][^\s]{3,200}?)(?=[\"']?$)"
)


_SECRET_KIND = re.compile(
    r"(?m)^\s*[\"']?kind[\"']?:\s{0,3}[\"']?Secret[\"']?\s*,?\s*$|[\"']kind[\"']:\s{0,3}[\"']Secret[\"']"
)
_DATA_BLOCK = re.compile(r"(?m)^([ ]*)(?:data|stringData):[ \t]*\r?\n")
_DATA_LINE = re.compile(
    r"([ ]+)[\w.\"'-]{1,100}:[ \t]{1,4}[\"']?([^\s\"'|>][^\r\n\"']{0,8000})[\"']?[ \t]*(?:\r?\n|\Z)"
)
_DATA_OBJECT = re.compile(r"[\"'](?:data|stringData)[\"']:\s{0,3}\{([^{}]{0,20000})\}")
_DATA_ITEM = re.compile(r"[\"'][\w.-]{1,100}[\"']:\s{0,20}[\"']([^\"']{1,8000})[\"']")
MAX_MANIFEST_LENGTH = 20_000


def _in_manifests(text: str) -> Iterator[tuple[int, int]]:
    """All values of a Kubernetes secret, whatever their names."""
    if "Secret" not in text or "kind" not in text:
        return
    position = 0
    while (kind := _SECRET_KIND.search(text, position)) is not None:
        first, limit = max(position, kind.start() - MAX_MANIFEST_LENGTH), kind.end() + MAX_MANIFEST_LENGTH
        first = max(first, text.rfind("\n---", first, kind.start()))
        following = text.find("\n---", kind.end(), limit)
        limit = limit if following < 0 else following
        for block in _DATA_BLOCK.finditer(text, first, limit):
            line = _DATA_LINE.match(text, block.end(), limit)
            while line is not None and len(line[1]) > len(block[1]):
                if can_be_secret(line[2], "secret"):
                    yield line.span(2)
                line = _DATA_LINE.match(text, line.end(), limit)
        for data in _DATA_OBJECT.finditer(text, first, limit):
            yield from (item.span(1) for item in _DATA_ITEM.finditer(text, *data.span(1)))
        position = limit
