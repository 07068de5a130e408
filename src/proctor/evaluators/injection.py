"""Finds phrases in a text that try to instruct the assistant or judge that reads it, by patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_PHRASES: tuple[tuple[float, str], ...] = (
    (0.9, r"\b(?:ignore|disregard|forget|override|bypass)\b"
          r" … \b(?:previous|prior|above|earlier|all|any|your|the|system)\b"
          r" … \b(?:instructions?|prompts?|rules|guidelines|directions|context|criteria)\b"),
    (0.8, r"\b(?:new|updated|real|actual|revised) (?:system )?instructions?\s{0,2}:"),
    (0.8, r"\byou are now (?:dan|in \w{1,20} mode|an? (?:unrestricted|different|new|evil|uncensored))\b"),
    (0.8, r"\b(?:from now on,? you(?: are|'re| will| must)|act as an? (?:unrestricted|jailbroken|uncensored))\b"),
    (0.9, r"\b(?:reveal|print|repeat|show|output|leak|tell me)\b"
          r" … \b(?:(?:system|hidden) prompt|(?:initial|your) instructions|developer message)\b"),
    (0.9, r"\b(?:judge|grader|evaluator|assessor|reviewer|examiner|scorer)s?\b"
          r" … \b(?:must|should|please|has to|need to|will)\b"
          r" … \b(?:score|pass|rate|mark|grade|accept|award|give|answer|output|return|respond)\b"),
    (0.9, r"\b(?:give|assign|award|rate|mark|score|return|output|grade)\b … \b(?:this|the|my|it)\b"
          r" … (?:\b(?:full|maximum|highest|perfect|top) (?:score|marks?|points|rating|grade)\b|\b(?:10/10|5/5|100%)"
          r"|\bas (?:correct|passed)\b|\bscore of (?:1|1\.0|10|100|5)\b)"),
    (0.8, r"\b(?:verdict|score|rating|grade|passed)[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:pass(?:ed)?|true|correct|1\.0|10)\b"
          r" … \b(?:ignore|regardless|no matter|always)\b"),
    (0.7, r"<\|?(?:im_start|im_end|system|endoftext|assistant)\|?>|\[/?INST\]|<<SYS>>"),
    (0.7, r"^[ \t]{0,4}#{2,4} ?(?:system|instruction)s? ?:"),
    (0.7, r"\bdo not (?:tell|inform|mention|reveal|alert)\b … \b(?:user|human|customer|anyone)\b"),
    (0.7, r"\b(?:begin|end|start) of (?:system )?(?:prompt|instructions)\b"),
    (0.6, r"\b(?:ai|assistant|language model|llm|chatbot)s?\b … \breading this\b"),
    (0.6, r"\bif you are an? (?:ai|llm|assistant|language model|judge|grader)\b"),
    (0.6, r"\b(?:jailbreak|developer mode|god mode|dan mode|without (?:any )?restrictions)\b"),
)  # fmt: skip
"""The weight of a phrase and its pattern. ` … ` stands for a few words of the same sentence."""


@dataclass(frozen=True, slots=True)
class Injection:
    """How likely a text tries to instruct its reader, and the phrases that suggest it."""

    score: float
    phrases: tuple[str, ...]


def detect_injection(text: str) -> Injection:
    """Look for instructions to an assistant or a judge. Several phrases make it more certain than one."""
    doubt = 1.0
    phrases: list[str] = []
    for weight, pattern in _patterns():
        match = pattern.search(text)
        if match is not None:
            doubt *= 1 - weight
            phrases.append(" ".join(match[0].split())[:120])
    return Injection(1 - doubt, tuple(phrases))


@cache
def _patterns() -> list[tuple[float, re.Pattern[str]]]:
    flags = re.IGNORECASE | re.MULTILINE
    return [(weight, re.compile(shape.replace(" … ", r"[^.\n]{0,30}"), flags)) for weight, shape in _PHRASES]
