"""Finds private data in a text by patterns: e-mail, phone, card, bank account and identity numbers, IP addresses.

A pattern alone finds too much: dates look like phone numbers, and order numbers like cards. So harmless look-alikes are
excluded first, check digits are verified, and the words before a number decide whether it is one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from proctor.base import masking


@dataclass(frozen=True, slots=True)
class SensitiveSpan:
    """A span of private data: its kind, a masked form, and its position."""

    kind: str
    text_masked: str
    start: int
    end: int


def mask_text(text: str) -> str:
    """The first two characters and stars; for short texts only stars."""
    return (text[:2] if len(text) >= 8 else "") + "*" * min(len(text), 12)


def find_secrets(text: str) -> list[SensitiveSpan]:
    """Secrets in order, each masked. The patterns are those that mask everything stored."""
    return [
        SensitiveSpan(
            "assigned_secret" if secret.by_name else secret.kind.lower().replace(" ", "_"),
            mask_text(text[secret.start : secret.end]),
            secret.start,
            secret.end,
        )
        for secret in masking.find_secrets(text)
    ]


def find_pii(text: str) -> list[SensitiveSpan]:
    """Personal data in order, without look-alikes such as dates, ISBNs and UUIDs."""
    findings: list[SensitiveSpan] = []
    taken: list[tuple[int, int]] = sorted(match.span() for match in re.finditer(_HARMLESS, text))
    for kind, pattern, holds in _kinds():
        spans: list[tuple[int, int]] = []
        for match, free in _with_overlap(re.finditer(pattern, text), taken):
            if free and holds(match[0], text[max(0, match.start() - 24) : match.start()]):
                findings.append(SensitiveSpan(kind, mask_text(match[0]), match.start(), match.end()))
                spans.append(match.span())
        taken = sorted([*taken, *spans])
    return sorted(findings, key=lambda finding: finding.start)


def _with_overlap(
    matches: Iterator[re.Match[str]], taken: list[tuple[int, int]]
) -> Iterator[tuple[re.Match[str], bool]]:
    """Each match with whether it is free of overlaps. Both lists are sorted, so one pass is enough."""
    position = 0
    for match in matches:
        while position < len(taken) and taken[position][1] <= match.start():
            position += 1
        yield match, position == len(taken) or taken[position][0] >= match.end()


def _kinds() -> tuple[tuple[str, str, Callable[[str, str], bool]], ...]:
    """Each kind of personal data: its name, its pattern, and a check of a match and the text before it."""
    return (
        ("email", _EMAIL, lambda match_text, before: True),
        ("iban", _IBAN, lambda match_text, before: is_valid_iban(match_text)),
        ("credit_card", _CARD, lambda match_text, before: _is_card(match_text)),
        ("us_ssn", r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", lambda match_text, before: _is_ssn(match_text)),
        ("ip_address", _IP, _is_machine_address),
        ("phone", _PHONE, _is_phone),
    )


_HARMLESS = (
    r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\bISBN(?:-1[03])?:?\s?[\d -]{9,20}[\dXx]\b|\b97[89][- ]\d{1,5}[- ]\d{1,7}[- ]\d{1,7}[- ]\d\b"
)
_EMAIL = r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![\w-])"
_IBAN = r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"
_CARD = r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])(?!\.\d)"
_IP = r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?![\w.]{0,20}\d)|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})(?![\w:])"
_PHONE = (
    r"(?<![\w.+/-])(?<!\d )(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]?\d{2,4}){1,5}"
    r"|\(\d{2,4}\) ?\d{3,4}[ .-]?\d{3,4}|\d{3}[-.]\d{3}[-.]\d{4}|0\d{2,4}[ -]\d{3,4}[ -]?\d{3,4})"
    r"(?![\w/-]|\.\d| \d)"
)


def passes_luhn(digits: str) -> bool:
    """Whether the check digit of a card number is right."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_valid_iban(text: str) -> bool:
    """Whether the check digits of an account number are right (modulo 97)."""
    account = text.replace(" ", "")
    if not 15 <= len(account) <= 34 or not account.isascii():
        return False
    return int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1


def _is_card(text: str) -> bool:
    """Whether issuer, length and check digit fit a card. Order numbers rarely have all three."""
    digits = re.sub(r"[^0-9]", "", text)
    issuer = re.match(r"4|5[1-5]|2[2-7]|3[47]|3[0689]|35|6(?:011|4|5|2)", digits)
    return issuer is not None and 13 <= len(digits) <= 19 and len(set(digits)) > 1 and passes_luhn(digits)


def _is_ssn(text: str) -> bool:
    area, group, serial = text.split("-")
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def _is_machine_address(text: str, before: str) -> bool:
    """Whether it is the address of a machine, not a version number, loopback, unspecified or multicast."""
    if re.search(r"(?:version|release|build|\bv)\.?\s{0,2}$", before, re.IGNORECASE):
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast)


def _is_phone(text: str, before: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if re.search(
        r"(?:order|invoice|ticket|case|ref\w{0,7}|id|no|number|sku|isbn|#)[\s.:#]{0,3}$", before, re.IGNORECASE
    ):
        return bool(re.search(r"(?:phone|tel|call|fax|mobile)[^\n]{0,20}$", before, re.IGNORECASE))
    return 8 <= len(digits) <= 15 and len(set(digits)) > 2
