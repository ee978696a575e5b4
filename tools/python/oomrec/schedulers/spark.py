"""Spark: records the executors and their Python workers.

    import oomrec.schedulers.spark

    builder = SparkSession.builder
    for name, value in oomrec.schedulers.spark.conf().items():
        builder = builder.config(name, value)

How an executor ended is in its recording or in the kernel's log, so nothing need be passed on.
"""

from __future__ import annotations

from . import environment

__all__ = ["conf"]


def conf(dump_dir: str | None = None) -> dict[str, str]:
    """The properties of Spark's configuration, `spark.executorEnv.NAME`, with which executors are recorded.

    `oomrec.schedulers.environment` has the variables. They reach the JVM and the Python workers that it starts.
    """
    return {f"spark.executorEnv.{name}": value for name, value in environment(dump_dir).items()}
