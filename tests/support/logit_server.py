"""What a llama.cpp server sends: a completion with the logits of each token, scripted."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from judge_server import Sends

Piece = str | tuple[str, Mapping[str, float]]
"""What was written; and, where it matters, how likely each alternative was, itself included."""


def with_logits(*pieces: Piece, finish_reason: str = "stop", **more: Any) -> Sends:
    """A completion made of these pieces, one token each."""
    tokens = [_token(*((piece, {piece: 1.0}) if isinstance(piece, str) else piece)) for piece in pieces]
    text = "".join(token["token"] for token in tokens)
    choice = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": text},
        "logprobs": {"content": tokens},
    }
    usage = {"prompt_tokens": 100, "completion_tokens": len(tokens)}
    body = {"object": "chat.completion", "model": "tiny.gguf", "choices": [choice], "usage": usage, **more}
    return Sends(200, json.dumps(body).encode())


def verdicts(*chances: Mapping[str, float]) -> Sends:
    """Verdicts on numbered items, the likeliest each."""
    pieces: list[Piece] = ['{"verdicts": [']
    for number, chance in enumerate(chances, 1):
        pieces += ["" if number == 1 else ", ", f'{{"number": {number}, "reason": "so", "verdict": "']
        pieces += [(max(chance, key=lambda word: chance[word]), chance), '"}']
    return with_logits(*pieces, "]}")


def choice(chances: Mapping[str, float]) -> Sends:
    """One choice with a reason, the likeliest."""
    best = max(chances, key=lambda word: chances[word])
    return with_logits('{"reason": "so", "choice": ', '"', (best, chances), '"', "}")


def failure(status: int, message: str, kind: str = "server_error") -> Sends:
    return Sends(status, json.dumps({"error": {"code": status, "message": message, "type": kind}}).encode())


def _token(text: str, chances: Mapping[str, float]) -> dict[str, Any]:
    alternatives = [_said(other, chance) for other, chance in chances.items()]
    return {**_said(text, chances[text]), "top_logprobs": alternatives}


def _said(text: str, chance: float) -> dict[str, Any]:
    return {"token": text, "logprob": math.log(chance), "bytes": list(text.encode())}


def pieces_of(text: str, cuts: Sequence[int]) -> list[str]:
    """`text` cut into tokens at these places."""
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    return [text[start:end] for start, end in itertools.pairwise(places)]
