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
    moved,
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
        moved,
        coroner,
        quiet,
    )
    for case in part.CASES
]
