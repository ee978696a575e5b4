"""This process' rank in its job: given by the program, else from its launcher's environment variables.

The first group of variables below that is complete and consistent (ranks below the world size) counts. Only
LOCAL_RANK may be missing: then it is the rank, as on a machine of its own.
"""

from __future__ import annotations

from typing import Any, Mapping

from ..errors import ConfigurationError

_GROUPS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)
_JOBS = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID")
_KEYS = ("rank", "local_rank", "world_size")


def _group(environment: Mapping[str, str], names: tuple[str, str, str]) -> dict[str, Any]:
    rank, local_rank, world_size = (environment.get(name, "").strip() for name in names)
    texts = (rank, local_rank or rank, world_size)
    if not all(text.isascii() and text.isdigit() for text in texts):
        return {}
    numbers = [int(text) for text in texts]
    return dict(zip(_KEYS, numbers)) if max(numbers[:2]) < numbers[2] else {}


def _found_in(environment: Mapping[str, str]) -> dict[str, Any]:
    groups = (_group(environment, names) for names in _GROUPS)
    found = next((group for group in groups if group), {})
    jobs = (environment.get(name, "").strip() for name in _JOBS)
    return {"job_id": next((job for job in jobs if job), None), **found}


def with_defaults(identity: Mapping[str, Any]) -> dict[str, Any]:
    """All four fields: outside a job, rank 0 of 1. An unknown local rank is the rank."""
    rank = identity.get("rank", 0)
    whole = {"job_id": None, "rank": rank, "local_rank": rank, "world_size": 1}
    return {**whole, **identity}


def resolve_distributed_identity(
    *,
    job_id: Any = None,
    rank: Any = None,
    local_rank: Any = None,
    world_size: Any = None,
    metadata: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """`job_id`, `rank`, `local_rank` and `world_size` of a process: the arguments, else those in `metadata`,
    else the launcher's in `env`, else None, 0, 0 and 1.

    Raises ConfigurationError (a ValueError) if they are inconsistent: ranks must be below the world size.
    """
    arguments = {"job_id": job_id, "rank": rank, "local_rank": local_rank, "world_size": world_size}
    known = _found_in(env or {})
    for given in (metadata or {}, arguments):
        known.update({key: given[key] for key in arguments if given.get(key) is not None})
    identity = with_defaults(known)
    for key in _KEYS:
        value, least = identity[key], int(key == "world_size")
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigurationError(f"{key} must be an integer, not {value!r}")
        if value < least:
            raise ConfigurationError(f"{key} must be >= {least}, not {value}")
    world = identity["world_size"]
    for key in ("rank", "local_rank"):
        if identity[key] >= world:
            raise ConfigurationError(f"{key} must be < world_size: {identity[key]} of {world}")
    return identity
