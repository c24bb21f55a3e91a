"""The one exception that users see: it names the value, the limit and the remedy."""

from __future__ import annotations


class UserError(Exception):
    """Bad input of a user; `lift` prints it as one sentence without a traceback and exits with `exit_status`."""

    exit_status = 2
