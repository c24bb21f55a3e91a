"""The one exception that users see: it names the value, the limit and the remedy."""

from __future__ import annotations

import re

_LONG_WORD = re.compile(r"\S{400,}")  # what somebody has put where a name or a number belongs


class UserError(Exception):
    """Bad input of a user; `lift` prints it as one sentence without a traceback and exits with `exit_status`."""

    exit_status = 2

    def __init__(self, sentence: str) -> None:
        super().__init__(_LONG_WORD.sub(lambda word: f"{word[0][:200]}…", sentence))
