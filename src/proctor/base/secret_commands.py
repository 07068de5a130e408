"""Finds passwords among the arguments of commands and calls: `mysql -pVALUE`, `curl -u user:VALUE`, `BasicAuth(...)`.

Each command has a pattern for the option that takes its password. It is searched for only on the line of the command,
and only in texts that have the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proctor.base.secret_names import MAX_LINE_LENGTH, can_be_secret, is_unusual

_USER = r"[^\s:\"'/=]{1,80}"
_VALUE = r"[^\s\"'\\]{3,200}"
_COMMANDS = tuple(
    (commands, re.compile(option))
    for commands, option in (
        (
            ("curl", "http ", "https ", "wget", "xh "),
            rf"(?<=[\s\"',\[])(?:-u|--user|--proxy-user|-U|-a|--auth)(?:[\s=\"',]|\\\"){{0,6}}{_USER}:({_VALUE})",
        ),
        (("mysql", "mariadb"), rf"(?<=[\s\"'])-p['\"]?(?![0-9]{{1,5}}\b)({_VALUE})"),
        (
            ("login", "sshpass", "mongo", "twine", "az ", "nuget", "skopeo", "rabbitmqadmin", "ansible", "cqlsh"),
            rf"(?<=[\s\"'])-p(?:[\s\"',]{{1,4}}|['\"])(?![0-9]{{1,5}}\b|-)({_VALUE})",
        ),
        (("curl",), rf"\s(?:-b|--cookie)\s{{1,3}}['\"]?[^\s=;'\"]{{1,80}}=({_VALUE})"),
        (("etcdctl",), rf"\s--user[\s=]{{1,3}}['\"]?{_USER}:({_VALUE})"),
        (("ssh-keygen",), rf"\s-[NP]\s{{1,3}}['\"]?(?!-)({_VALUE})"),
        (
            ("--with-token", "-stdin", "secret put", "secret set", "secrets set"),
            rf"[^\n<]{{0,80}}<<<\s{{0,3}}['\"]?({_VALUE})",
        ),
        (
            ("<(echo", "<(printf"),
            r"\s{1,3}(?:-n\s{1,3}|['\"]?%s['\"]?\s{1,3})?['\"]?([^\s\"'\\)]{3,200})['\"]?\)",
        ),
        (("snmp-server", "snmpwalk", "snmpget"), rf"\s(?:community|-c)\s{{1,3}}['\"]?({_VALUE})"),
        (("ldap",), rf"\s-w\s{{1,3}}['\"]?(?!-)({_VALUE})"),
        (("redis-cli",), rf"\s-a\s{{1,3}}['\"]?(?!-)({_VALUE})"),
        (("zip ", "sqlcmd", "bcp ", "mosquitto_"), rf"\s-P\s{{0,3}}['\"]?(?!-)({_VALUE})"),
        (("7z ",), rf"\s-p({_VALUE})"),
        (("openssl",), rf"\s-pass(?:in|out)?\s{{1,3}}['\"]?pass:({_VALUE})"),
        (("openssl",), r"\s-K\s{1,3}([0-9A-Fa-f]{16,128})"),
        (
            ("htpasswd",),
            rf"\s-\w{{0,4}}b\w{{0,4}}(?:\s{{1,3}}-\w{{1,5}}){{0,3}}\s{{1,3}}\S{{1,100}}\s{{1,3}}\S{{1,80}}\s{{1,3}}['\"]?({_VALUE})",
        ),
        (("WIFI:",), r"[:;]P:((?:[^;\\\s]|\\.){3,200})(?=;)"),
        (("smbclient", "rpcclient", "smbmap"), rf"\s-U\s{{0,3}}['\"]?[^\s%]{{1,80}}%({_VALUE})"),
        (("sqlplus", "expdp", "impdp", "thin:"), rf"(?:\s|(?<=thin:))\w{{1,40}}/({_VALUE}?)(?=@)"),
        (
            ("echo",),
            rf"\s(?:-n\s{{1,3}})?['\"]?(?:\w{{1,40}}:)?({_VALUE})['\"]?\s{{0,3}}\|\s{{0,3}}"
            r"(?:sudo\b|chpasswd\b|[^|\n]{0,200}-stdin)",
        ),
        (("ConvertTo-SecureString",), rf"\s(?:-String\s{{1,3}})?['\"]({_VALUE})"),
        (("login",), rf"\s[A-Za-z][\w.@-]{{0,40}}(?<!HTTP)/(?=.{{6}})({_VALUE})"),
        (
            ("creds", "credentials", "Credentials", "login/pass", "user/pass", "username/password", "login/password"),
            rf"\s{{0,3}}[:=]\s{{0,3}}['\"]?[\w.@-]{{1,60}}(?:\s?:|\s{{0,2}}/\s{{1,2}})(?!\()({_VALUE})",
        ),
        (("net use",), rf"\s(?:/user:\S{{1,80}}|\\\\\S{{1,100}})\s{{1,3}}['\"]?(?!/)({_VALUE})"),
        (("operator unseal",), rf"\s{{1,3}}(?!-)({_VALUE})"),
        (("AUTH PLAIN", "AUTHENTICATE PLAIN"), r"\s{1,2}([A-Za-z0-9+/]{12,400}={0,2})"),
        (
            ("secret set", "secret put", "secrets put", "SecureString", "create-secret"),
            rf"\s(?:--body|-b|--value|--secret-string)(?:(?:\s{{1,3}}|=)['\"]?|['\"])(?!-)({_VALUE})",
        ),
        (("Fernet(", "SecretKeySpec(", "hmac.new("), rf"(?<=\()\s{{0,3}}b?[\"']({_VALUE})[\"']"),
        (
            ("jwt.encode(", "jwt.decode(", "jwt.sign(", "jwt.verify(", "createHmac("),
            rf",\s{{0,3}}b?[\"']({_VALUE})[\"']\s{{0,3}}[,)]",
        ),
        (
            ("Client(", "twilio("),
            r"(?<=\()[\"']AC[0-9a-f]{32}[\"']\s{0,3},\s{0,3}[\"']([0-9a-f]{32})[\"']",
        ),
        (
            (
                "BasicAuth(",
                "DigestAuth(",
                "basic_auth(",
                "basicAuth(",
                "NetworkCredential(",
                "UsernamePasswordCredentials(",
                "PasswordAuthentication(",
                ".login(",
                "WiFi.begin(",
                "auth=(",
                "auth=[",
                "auth:[",
                "auth: [",
            ),
            r"\s{0,3}[\"'][^\"'\r\n]{0,80}[\"']\s{0,3},\s{0,3}[\"']([^\"'\r\n]{3,200})",
        ),
    )
)
"""Words that a command begins with, and the option that takes its password; both are on one line."""
LOGIN_TOKEN = re.compile(r"(?:login[ =]|auth |authtoken )['\"]?([0-9a-f]{32,64}|[0-9a-f-]{36})(?![\w-])")
"""A command such as `wandb login` with a token that looks like a hash."""
COMMAND_WORDS = tuple(command for commands, _ in _COMMANDS for command in commands)


def passwords_in_commands(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each password that is an argument of a command."""
    for commands, option in _COMMANDS:
        for command in commands:
            position = text.find(command)
            while position >= 0:
                end = position + len(command)
                is_end_of_word = position > 0 and text[position - 1].isalnum()
                if not is_end_of_word or command.endswith("("):  # as in `setBasicAuth(`
                    yield from _password_option(text, end, option)
                position = text.find(command, end)


def _password_option(text: str, position: int, option: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    limit = min(len(text), position + MAX_LINE_LENGTH)
    line_end = text.find("\n", position, limit)
    value = option.search(text, position - 1, limit if line_end < 0 else line_end)
    if value is None or value[1].startswith("//") or not can_be_secret(value[1], "password"):
        return
    if is_unusual(value[1]):
        yield value.span(1)
