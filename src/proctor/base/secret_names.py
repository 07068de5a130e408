"""Which names say that a value is a secret, and which values can be one.

A name is read as words: `spring.datasource.dbPassword_2` ends in `password`, followed by a word that changes nothing.
Names are of three strengths:

- CERTAIN, such as `password` and `api_key`: any value is a secret unless it is a placeholder, a variable, or, if
  nothing quotes it, an ordinary word.
- UNCERTAIN, such as `token` and `auth`: ordinary things have these names too, so the value has to look like a
  credential.
- NONE.

Placeholders (`<password>`, `$TOKEN`, `your-api-key`, `****`) are never secrets, whatever their name.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from enum import IntEnum

MAX_VALUE_LENGTH = 4096
MAX_NAME_LENGTH = 80
MAX_LINE_LENGTH = 300
"""How much of a line is looked at."""
RANDOM_LENGTH, RANDOM_ENTROPY = 16, 3.5
CREDENTIAL_LENGTH = 8
"""The shortest value that counts as a credential after an uncertain name."""


class Strength(IntEnum):
    """How much a name says about its value."""

    NONE = 0
    UNCERTAIN = 1
    CERTAIN = 2


PASSWORD_NAMES = tuple(
    """password passwd passwort passphrase passcode kennwort contraseña contrasena senha motdepasse wachtwoord lösenord
    hasło heslo parola şifre пароль 密码 パスワード パスワードは 비밀번호 비밀번호는 pwd""".split()
)
"""Words for a password, also at the end of a longer word: `dbpassword`; some with the particle of a subject."""
_GLUED_NAMES = (
    *PASSWORD_NAMES,
    *"secret authorization apikey apitoken secretkey accesskey accesstoken refreshtoken authtoken sessiontoken".split(),
    *"csrftoken privatekey accountkey connectionstring requirepass storepass keypass userpw rootpw".split(),
    *"bindpw cookie credential credentials userpass apipass".split(),
)
_CERTAIN_NAMES = tuple(
    """api_key api_token secret_key access_key access_token refresh_token auth_token id_token bearer_token session_token
    security_token private_key signing_key encryption_key account_key master_key subscription_key service_key auth_key
    connection_string psk client_key license_key storage_key shared_key root_pw bind_pw pw private_token csrf_token
    secret_access_key bot_token personal_access_token mot_de_passe authorization_code app_key db_pass user_pass
    pass_word pass_phrase admin_pass root_pass basic_auth sas_token admin_key write_key deploy_key server_key unseal_key
    recovery_key api_schlüssel apischlüssel clé_api clave_api clave_secreta clave_de_api clave_de_acceso chave_de_api
    chave_de_acesso chave_secreta mật_khẩu كلمة_المرور
    setup_key auth_salt logged_in_salt nonce_salt samlresponse seed_phrase recovery_phrase mnemonic auth_header
    pass_code""".split()
)
_UNCERTAIN_NAMES = tuple(
    """token auth pass clave chave schlüssel tokens cookies jwt bearer sig signature pin login_key passkey
    recovery_code backup_code unlock_code""".split()
)
_NEUTRAL_WORDS = frozenset(
    """prod production dev development staging stage live old new current base value val text plain raw default primary
    secondary main backup b64 base64 encoded confirm confirmation again repeat env var str string data pem""".split()
)
"""Words after the name of a secret that change nothing: `API_KEY_PROD`."""
_CONNECTION_STRING = ["connection", "string"]
"""The name in which `string` is not neutral."""
_QUESTION_WORDS = frozenset(
    """is has no not show hide forgot forgotten reset change need needs require requires required use uses without
    missing invalid wrong incorrect enable disable allow max min""".split()
)
"""Words before the name of a secret that make it something else: `reset_password`."""
_ACTIONS = frozenset("reset change forgot forgotten".split())
"""Question words that describe a token: a `reset_token` resets a password, and is a secret itself."""
_ORDINARY_KEYS = frozenset(
    """primary foreign sort cache partition public row hash dict lookup object routing group shift arrow index unique
    sorting ordering range map json item case content question agent suite run fingerprint idempotency message
    dedup deduplication""".split()
)
"""Words before `key` that make it something else; after others, as in `STRIPE_KEY`, a random value is a secret."""
_ORDINARY_TOKENS = frozenset(
    """max min next page continuation pad eos bos sep cls unk mask stop start end special first last per new total
    prompt completion input output cached cancel cancellation concurrency sync resume delta scroll client request
    session idempotency correlation device state public key""".split()
)
"""Words before `token` that make it something else; after others, as in `GITHUB_TOKEN`, any mixed value is a secret."""
_PAGING_TOKENS = frozenset("page continuation sync delta scroll resume".split())
"""Words before `token` that make it a place in a list. It is long and random, and opens nothing."""
_CONFIG_NAME = re.compile(
    r"(?i)api[_-]?key|passw(or)?d|secret|credential|authorization|connection[_-]?string|token$|cookie$|(^|[_-])key$"
)
ORDINARY_NAME = re.compile(r"(file|path|dir|folder|name|url|uri|endpoint|region|type|count|limit|size|sock)$")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_IDENTIFIER = re.compile(r"[^\W\d](?:[^\W\d]|\.)*[!?:]?|[A-Z][a-z]{2,10}-[A-Z][A-Za-z]{2,40}")
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_LONG_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}={1,2}")
_PART = r"(?:[A-Za-z]{1,20}|[A-Za-z]{4,20}[0-9]{1,2}|[0-9]{1,8}|[A-Za-z0-9]{1,3}|[0-9]{4}-?[0-9]{2}-?[0-9]{2}T[0-9]{2})"
_WORDS_AND_NUMBERS = re.compile(rf"{_PART}(?:[-_.:/@+]{{1,3}}{_PART})+Z?")
MASK_PATTERN = re.compile(r"\[secret: (?:[^\[\]]{1,80}, )?[0-9]{1,12} characters\]")
"""The text that replaces a secret."""
_PLACEHOLDER = re.compile(
    r"(?i:[$%#]?\{(?!s?sha|s?md5|crypt|argon|pbkdf).*\}?"
    r"|<[^<>]{0,100}>?|\$\(.*|%[a-z_]\w*%|%\(?\w{0,40}\)?[sd]|[:@?][a-z_]{0,40}|[x*.•…?_-]{3,}"
    r"|\[?(?:masked|redacted|removed|hidden|filtered|omitted|none|null|nil|true|false|undefined|required|optional)\]?"
    r"|[a-z_-]{0,16}(?:\.{3}|…)|your[-_ ][a-z_ -]{1,60}|(?:insert|enter|put|replace)[-_ ][a-z_ -]{0,60}here"
    r"|same-origin|include|omit|(?:env|file|vault|op|ssm)://?.*|env[:./][\w.]+)"
    r"|!(?:vault|secret|env|env_var|Ref|Sub|GetAtt|ImportValue|reference)"
    r"|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+(?:[.\[>-].*)?|secrets\.[A-Z0-9_]+"
    r"|(?:os\.environ|process\.env|ENV\[|System\.getenv|import\.meta\.env).*"
)
_FOLDER = re.compile(r"(?:[/~.]|[A-Za-z]:[\\/]).*", re.DOTALL)


@functools.lru_cache(maxsize=4096)
def last_part(name: str) -> str:
    """The last part of a dotted name, in lower case and with underscores; `key` and `token` keep the part before."""
    before, _, last = name[-MAX_NAME_LENGTH:].rstrip(".").rpartition(".")
    if last.lower() in ("key", "token") and before:
        last = f"{before.rpartition('.')[2]}_{last}"
    return re.sub(r"[-\s:/]+", "_", _CAMEL.sub("_", last).lower())


@functools.lru_cache(maxsize=4096)
def name_strength(name: str) -> Strength:
    """How much a name says about its value: `http.request.header.authorization`, `X-Api-Key`, `apiKey_2`."""
    words = [word for word in last_part(name).split("_") if word]
    while len(words) > 1 and (words[-1] in _NEUTRAL_WORDS or words[-1].isdigit()) and words[-2:] != _CONNECTION_STRING:
        words.pop()
    if not words or (words[0] in _QUESTION_WORDS and not (words[0] in _ACTIONS and words[-1] == "token")):
        return Strength.NONE
    last = words[-1].rstrip("0123456789") or words[-1]
    plain = "_".join([*words[:-1], last])
    for form in (plain, plain.removesuffix("s")):
        if form.endswith(_GLUED_NAMES) and plain != "cookies":
            return Strength.CERTAIN
        if any(form == ending or form.endswith("_" + ending) for ending in _CERTAIN_NAMES):
            return Strength.CERTAIN
    if last == "token" and len(words) > 1 and words[-2] in _PAGING_TOKENS:
        return Strength.NONE
    if plain in _UNCERTAIN_NAMES or plain.endswith(
        ("_token", "_auth", "pass", "_signature", "_sig", "_bearer", "_jwt", "_pat")
    ):
        return Strength.UNCERTAIN
    if plain.endswith("_key") and words[-2] not in _ORDINARY_KEYS:
        return Strength.UNCERTAIN
    return Strength.NONE


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str, *, config_names: bool = False) -> bool:
    """Whether values of that name are secrets: `http.request.header.authorization`, `X-Api-Key`, `apiKey`.

    `config_names` accepts more names, such as `key` and `token`, for the settings of a model or an account.
    """
    if name_strength(name) is Strength.CERTAIN:
        return True
    last = last_part(name)
    return config_names and _CONFIG_NAME.search(last) is not None and ORDINARY_NAME.search(last) is None


def is_secret_value(name: str, text: str, *, config_names: bool = False) -> bool:
    """Whether a text under a name, as in data, is a secret."""
    if not name or not can_be_secret(text, name):
        return False
    if is_secret_name(name, config_names=config_names):
        return True
    return name_strength(name) is Strength.UNCERTAIN and fits_uncertain_name(text, name)


def fits_uncertain_name(value: str, name: str) -> bool:
    """Whether a value after an uncertain name is a secret.

    A hash after `..._key` is none, because many keys are hashes, but for a variable such as `ALGOLIA_KEY`.
    """
    last = last_part(name)
    if last.endswith("_key"):
        return looks_like_credential(value, 12) and (name.isupper() or not _is_hexadecimal(value))
    if last.endswith("_token") and last.split("_")[-2] not in _ORDINARY_TOKENS and len(value) >= 6:
        return is_mixed(value)
    return looks_like_credential(value)


def can_be_secret(text: str, name: str) -> bool:
    """Whether a text can be a secret at all: not a placeholder, a variable or a mask. `pwd` may also name a folder."""
    head = text[:MAX_VALUE_LENGTH].strip()
    if name.lower() in ("pwd", "oldpwd") and _FOLDER.match(head):
        return False
    if _PLACEHOLDER.fullmatch(head[:200]) or MASK_PATTERN.fullmatch(head):
        return False
    if len(head) <= MAX_NAME_LENGTH and _is_label_or_hint(head, name):
        return False
    return any(character.isalnum() for character in head)


def _is_label_or_hint(value: str, name: str) -> bool:
    """Whether a value is the name again, another name, a sentence for users, or what follows the path of a request.

    `api_key: "API key"`, `api_key_env: OPENAI_API_KEY`, `Authorization, X-API-Key`,
    `password: This field is required.`, `GET /password HTTP/1.1`
    """
    last = last_part(name)
    if re.sub(r"\W", "", value.lower()) == last.replace("_", "") or value.startswith("HTTP/"):
        return True
    if _OTHER_NAME.fullmatch(value) and name_strength(value) is not Strength.NONE:
        return True
    is_role = last.endswith("authorization") and _ROLE.fullmatch(value) is not None
    return is_role or (_HINT.fullmatch(value) is not None and not last.endswith("phrase"))


_OTHER_NAME = re.compile(r"[A-Z]+(?:_[A-Z]+)+|[A-Z][A-Za-z]{0,15}(?:-[A-Z][A-Za-z]{0,15})+")
"""A variable or a header: `OPENAI_API_KEY`, `X-Api-Key`."""
_ROLE = re.compile(r"[a-z]{1,20}(?:-[a-z]{1,20})+")
_HINT = re.compile(r"[A-Z][a-z]+(?: [a-z]+){2,}[.!]")


def looks_random(value: str) -> bool:
    """Long, of mixed characters, with more information per character than words have, and neither a UUID nor a name.

    Names of models, images and releases are words and numbers: `gpt-4o-mini-2024-07-18`, `ghcr.io/acme/app:1.2.3`.
    """
    sample = value[:MAX_VALUE_LENGTH]
    if len(sample) < RANDOM_LENGTH or not any(character.isdigit() for character in sample):
        return False
    counts = Counter(sample)
    entropy = -sum(count / len(sample) * math.log2(count / len(sample)) for count in counts.values())
    return entropy >= RANDOM_ENTROPY and not _is_ordinary(sample)


def looks_like_credential(value: str, shortest: int = CREDENTIAL_LENGTH) -> bool:
    """Letters and digits in a word that is neither a UUID nor the name of something with its number."""
    sample = value[:MAX_VALUE_LENGTH]
    is_path = sample.startswith(("/", "./", "~/", "http://", "https://")) and not _LONG_BASE64.fullmatch(sample)
    if len(sample) < shortest or is_path:
        return False
    return is_mixed(sample) and not _is_ordinary(sample)


def is_typed_password(value: str) -> bool:
    """Whether what was typed into a field for a password can be one: not a hint such as `Enter your password`."""
    has_sign = any(not character.isalnum() for character in value.rstrip(".:*?"))
    return len(value) >= 6 and " " not in value and (is_mixed(value) or has_sign)


def is_mixed(value: str) -> bool:
    """Whether a word has both letters and digits."""
    has_letter = any(character.isalpha() for character in value)
    return has_letter and any(character.isdigit() for character in value) and " " not in value


def is_unusual(value: str) -> bool:
    """Neither a word nor the name of something in code."""
    word = value.rstrip("=")
    return not _IDENTIFIER.fullmatch(word) or _has_random_case(word)


def _has_random_case(word: str) -> bool:
    """Whether small and capital letters take turns more often than in `aNameInCode`."""
    changes = sum(a.isupper() != b.isupper() for a, b in itertools.pairwise(word[:MAX_VALUE_LENGTH]))
    return word.isalpha() and len(word) >= RANDOM_LENGTH and changes > 0.4 * len(word)


def is_uuid(value: str) -> bool:
    return _UUID.fullmatch(value) is not None


def _is_ordinary(value: str) -> bool:
    return " " in value or is_uuid(value) or bool(_WORDS_AND_NUMBERS.fullmatch(value))


def _is_hexadecimal(value: str) -> bool:
    return all(character in "0123456789abcdefABCDEF" for character in value)


def is_name_key(key: str) -> bool:
    """Whether the text under this key names the value beside it: `{"name": "X-Api-Key", "value": "..."}`."""
    return last_part(key).rpartition("_")[2] in _NAME_KEYS


def is_value_key(key: str) -> bool:
    """Whether this key has the value in an object that also has its name."""
    return last_part(key).rpartition("_")[2] in _VALUE_KEYS


def password_field(key: str, text: str) -> str:
    """The word for a password in the text that says where something is typed; empty if there is none.

    Tools of browsers have it beside the typed text: `{"element": "Password textbox", "text": "..."}`.
    """
    words = re.findall(r"\w+", text.lower()) if last_part(key).rpartition("_")[2] in TARGET_KEYS else ()
    return next((word for word in words if word.endswith(PASSWORD_NAMES)), "")


def is_typed_key(key: str) -> bool:
    """Whether this key has what was typed, in an object that also says where."""
    return last_part(key) in TYPED_KEYS


def is_private_key_part(key: str, text: str) -> bool:
    """Whether this is a private number of a JSON Web Key, which is an object with the key `kty`."""
    return key in PRIVATE_KEY_PARTS and len(text) >= RANDOM_LENGTH and " " not in text


TARGET_KEYS = tuple("element selector label locator target placeholder xpath field".split())
"""Keys for the place on a page where something is typed."""
TYPED_KEYS = ("text", "value", "keys")
PRIVATE_KEY_PARTS = ("d", "p", "q", "dp", "dq", "qi", "k")
_NAME_KEYS = frozenset("name key header field parameter variable var property option".split())
_VALUE_KEYS = frozenset("value values val content string_value".split())
_FOLDER_VARIABLES = ("PWD", "OLDPWD")
"""The shell's variables for folders; elsewhere `pwd` is a password."""


def is_secret_variable_name(name: str) -> bool:
    """Whether an environment variable is a secret by its name."""
    return name not in _FOLDER_VARIABLES and is_secret_name(name, config_names=True)
