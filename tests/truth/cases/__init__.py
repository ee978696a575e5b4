"""All cases, a file for each class."""

from truth.case import Case
from truth.cases import (
    account,
    consequence,
    coroner,
    handled,
    kills,
    levels,
    limits,
    quiet,
    runtimes,
    told,
    workers,
)

CASES: list[Case] = [
    case
    for part in (
        handled,
        consequence,
        kills,
        levels,
        account,
        limits,
        runtimes,
        workers,
        told,
        coroner,
        quiet,
    )
    for case in part.CASES
]
