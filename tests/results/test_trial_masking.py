"""What is masked in a stored trial beyond the texts in which a secret can be recognized."""

from __future__ import annotations

from dataclasses import replace

from builders import score, single, trial

from proctor.agents.reply import Reply, ToolCall
from proctor.base.output_capture import CapturedOutput
from proctor.results.masking import mask_trial
from proctor.results.score import Outcome

TOKEN = "gh" + "p_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
OTHER = "gh" + "p_z9Y8x7W6v5U4t3S2r1Q0p9O8n7M6l5K4j3I2"
SESSION = "9f8e7d6c5b4a39281706zz"


def test_a_reason_that_quotes_a_piece_of_a_secret_shows_none_of_it() -> None:
    reason = f'first difference at character 5: "{OTHER[4:24]}" became "{TOKEN[4:24]}"; at the end "{TOKEN[-9:]}"'
    failed = score(Outcome.FAILED, 0.0, reasoning=reason)
    masked = mask_trial(trial(single("a", output=OTHER), Outcome.FAILED, TOKEN, failed))
    assert masked.scores[0].reasoning == (
        'first difference at character 5: "[secret: 20 characters]" became "[secret: 20 characters]"; '
        'at the end "[secret: 9 characters]"'
    )


def test_a_secret_that_one_text_names_is_masked_in_the_others() -> None:
    call = ToolCall("login", {"user": "kim"}, {"token": SESSION, "note": f"the password is {SESSION[::-1]}"})
    reply = Reply(f"I am signed in with {SESSION} and {SESSION[::-1]}.", tool_calls=(call,))
    masked = mask_trial(trial("a", replies=(reply,)))
    assert masked.replies[0].text == "I am signed in with [secret: 22 characters] and [secret: 22 characters]."


def test_a_secret_is_found_in_other_texts_without_the_sign_that_ends_its_sentence() -> None:
    replies = (Reply(f"Login: kim, password: {SESSION}. Then press Enter."), Reply(f"I typed {SESSION} there."))
    assert mask_trial(trial("a", replies=replies)).replies[1].text == "I typed [secret: 22 characters] there."


def test_a_secret_that_only_the_log_or_the_reason_of_the_end_names_is_masked_in_the_answer() -> None:
    reply = Reply(f"I typed {SESSION} and {SESSION[::-1]}.")
    ended = trial("a", replies=(reply,), captured=CapturedOutput(f"DEBUG password={SESSION}\n"))
    masked = mask_trial(replace(ended, end_reason=f"login failed with password={SESSION[::-1]}"))
    assert masked.replies[0].text == "I typed [secret: 22 characters] and [secret: 22 characters]."


def test_a_token_has_the_mask_of_its_kind_in_every_text() -> None:
    masked = mask_trial(trial(single("a", question=TOKEN), answer=f"{TOKEN}, said twice"))
    assert masked.case.turns[0].input == "[secret: GitHub token, 40 characters]"
    assert masked.replies[0].text == "[secret: GitHub token, 40 characters], said twice"


def test_an_ordinary_word_that_is_a_password_somewhere_stays_in_other_texts() -> None:
    replies = (Reply("see https://kim:password@shop.example"), Reply("Your password is on the card."))
    assert mask_trial(trial("a", replies=replies)).replies[1].text == "Your password is on the card."
