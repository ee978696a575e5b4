"""Errors that end a command with one message."""

from __future__ import annotations


class FleetError(Exception):
    """What went wrong with a fleet's table, and what to do about it.

    Attributes:
        advice: what to do, for the user
        exit_code: of the command: 1 if there is nothing to show, 2 for bad input
    """

    def __init__(self, message: str, advice: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.advice = advice
        self.exit_code = exit_code
