"""The one exception that users see: it names the value, the limit and the remedy."""

from __future__ import annotations

_LONGEST, _HEAD, _TAIL = 1500, 1000, 400  # characters of a sentence, and of what is left of a longer one


class UserError(Exception):
    """Bad input of a user; `lift` prints it as one sentence without a traceback and exits with `exit_status`.

    Of a sentence that quotes a book its middle is left out: the remedy stands at its end.
    """

    exit_status = 2

    def __init__(self, sentence: str) -> None:
        cut = f"{sentence[:_HEAD]} […] {sentence[-_TAIL:]}" if len(sentence) > _LONGEST else sentence
        super().__init__(cut)
