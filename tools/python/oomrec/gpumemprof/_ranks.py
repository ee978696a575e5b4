"""This process' rank in its job, from its launcher's environment variables.

The first group below that is complete and consistent (ranks below the world size) counts. The program's own
arguments override it.
"""

from __future__ import annotations

import os
from typing import Any, Mapping

from ..errors import ConfigurationError

_GROUPS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
_JOBS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_KEYS = ("rank", "local_rank", "world_size")


def _group(environment: Mapping[str, str], names: tuple[str, str, str]) -> dict[str, int]:
    texts = [environment.get(name, "") for name in names]
    if not all(text.isascii() and text.isdigit() for text in texts):
        return {}
    rank, local_rank, world_size = map(int, texts)
    if max(rank, local_rank) >= world_size:
        return {}
    return dict(zip(_KEYS, (rank, local_rank, world_size)))


def rank_identity(
    job_id: str | None = None,
    rank: int | None = None,
    local_rank: int | None = None,
    world_size: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Those of `job_id`, `rank`, `local_rank` and `world_size` that are known.

    Raises ConfigurationError if they are inconsistent: ranks must be below the world size.
    """
    environment = os.environ if environment is None else environment
    identity: dict[str, Any] = {}
    for names in _GROUPS:
        identity = dict(_group(environment, names))
        if identity:
            break
    jobs = [environment[name] for name in _JOBS if environment.get(name)]
    given = {"rank": rank, "local_rank": local_rank, "world_size": world_size}
    identity.update({key: value for key, value in given.items() if value is not None})
    if job_id is not None or jobs:
        identity["job_id"] = job_id if job_id is not None else jobs[0]

    for key in _KEYS:
        value = identity.get(key)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int) or value < (key == "world_size")
        ):
            raise ConfigurationError(f"{key}={value!r} is not a rank; ranks count from 0")
    for key in ("rank", "local_rank"):
        if identity.get(key, 0) >= identity.get("world_size", float("inf")):
            raise ConfigurationError(
                f"{key}={identity[key]} must be less than world_size={identity['world_size']}"
            )
    return identity
