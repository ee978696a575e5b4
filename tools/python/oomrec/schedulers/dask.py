"""Dask: records its workers, and explains those that their nanny ended at the memory limit.

    import oomrec.schedulers.dask

    oomrec.schedulers.dask.configure()
    client = distributed.Client(distributed.LocalCluster(memory_limit="4GiB"))
    client.register_plugin(oomrec.schedulers.dask.OomrecNanny())

A nanny ends its worker at 95 % of its memory limit. What the worker held is then in a bundle, its verdict in the
nanny's log, and `verdicts(client)` lists it for whoever gets a KilledWorker.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from .._impl.command import ended
from . import environment, recover

if TYPE_CHECKING:

    class NannyPlugin:
        """Of distributed, which need not be installed where types are checked."""
else:
    from distributed import NannyPlugin

__all__ = ["OomrecNanny", "configure", "verdicts"]

TOPIC = "oomrec"
_POLL_S = 0.2
_HINT = ": call oomrec.schedulers.dask.configure() before its nanny starts"

_log = logging.getLogger("distributed.nanny.oomrec")


def configure(dump_dir: str | None = None) -> None:
    """Records the workers of nannies that this process starts from now on: LocalCluster, SSHCluster, `Nanny`.

    Sets `distributed.nanny.pre-spawn-environ` of Dask's configuration to `oomrec.schedulers.environment`.
    For `dask worker` on the command line, set it in Dask's YAML file.
    """
    import dask

    names = {
        f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in environment(dump_dir).items()
    }
    dask.config.set(names)


def verdicts(client: Any) -> list[dict[str, Any]]:
    """The deaths of workers so far, oldest first, from the topic "oomrec" of the scheduler's log of events.

    Each has the keys worker (its address), pid, code, certainty, summary and bundle (a path on the worker's
    machine). The scheduler keeps the last 100,000 events of a topic.
    """
    return [event for _, event in client.get_events(TOPIC)]


class OomrecNanny(NannyPlugin):
    """A nanny with it enters the nanny's reason before the worker is ended, and makes a bundle afterwards.

    Each bundle's verdict is a line in the nanny's log, and an event of the topic "oomrec" (`verdicts`).
    """

    name = "oomrec"

    def setup(self, nanny: Any) -> None:
        """Called by Dask, in the nanny's event loop."""
        log_event, kill = nanny.log_event, nanny.kill
        told: set[int] = set()

        def enter_reason(topic: Any, message: Any) -> Any:
            # Dask logs this just before it sends SIGTERM.
            if topic == "worker-restart-memory":
                _address_of[message["pid"]] = message["worker"]
                told.add(message["pid"])
                reason = _reason(nanny, message["rss"])
                if not ended(message["pid"], "Dask's nanny", reason):
                    _log.warning("oomrec: worker %s is not recorded%s", message["worker"], _HINT)
            return log_event(topic, message)

        async def enter_other_reason(
            *words: Any, reason: str = "nanny-kill", **options: Any
        ) -> Any:
            # Of a restart, say. A worker that is slow to end gets SIGKILL, which would look like the kernel's.
            process = nanny.process.process if nanny.process is not None else None
            if process is not None and process.is_alive() and process.pid not in told:
                await asyncio.to_thread(ended, process.pid, "Dask's nanny", reason, memory=False)
            return await kill(*words, reason=reason, **options)

        nanny.log_event, nanny.kill = enter_reason, enter_other_reason
        self._follower = asyncio.ensure_future(_follow(nanny))

    def teardown(self, nanny: Any) -> None:
        """Called by Dask, when the plugin is removed, or the nanny closes. Then it ends its worker next: `kill` stays."""
        self._follower.cancel()
        nanny.__dict__.pop("log_event", None)


def _reason(nanny: Any, rss: int) -> str:
    limit = getattr(getattr(nanny, "memory_manager", None), "memory_limit", None)
    fraction = getattr(getattr(nanny, "memory_manager", None), "memory_terminate_fraction", None)
    if not limit or not fraction:
        return f"{rss} bytes resident"
    return f"{rss} bytes resident of a limit of {limit}, of which it allows {fraction:.0%}"


_address_of: dict[int, str] = {}  # of workers of this process' nannies, by pid


async def _follow(nanny: Any) -> None:
    """Recovers after each end of one of the nanny's workers."""
    previous = None
    while True:
        worker = nanny.process
        process = worker.process if worker is not None else None
        if process is None or process is previous or process.pid is None:
            await asyncio.sleep(_POLL_S)
            continue
        previous = process
        with contextlib.suppress(ValueError):  # it has ended, and Dask has closed it
            await process.join()
        _address_of.setdefault(process.pid, worker.worker_address or "")
        await _report(nanny)


async def _report(nanny: Any) -> None:
    # Also of other nannies' workers: whoever comes first recovers all.
    for verdict in await asyncio.to_thread(recover):
        if verdict.code == "killed_externally":  # a worker that was slow to end
            continue
        worker = _address_of.get(verdict.pid, "")
        _log.error("oomrec: worker %s: %s; oomrec show %s", worker, verdict.summary, verdict.bundle)
        nanny.log_event(TOPIC, {"worker": worker, **verdict._asdict()})
