"""The same table and the same queries on a Spark cluster."""

from __future__ import annotations

import importlib
import re
from typing import Any

from ._errors import FleetError
from ._table import Table, current_parts


def started_session(engine: str) -> Any:
    """A session on spark://HOST:PORT, or on threads of this process, spark://local[2].

    Raises:
        FleetError: pyspark is not installed
    """
    try:
        spark = importlib.import_module("pyspark.sql")
    except ImportError as error:
        raise FleetError(f"{engine} needs the package pyspark", "pip install pyspark") from error
    master = engine.replace("spark://local", "local", 1)
    return spark.SparkSession.builder.master(master).appName("oomrec fleet").getOrCreate()


class SparkTable(Table):
    """A table whose queries Spark runs. Its workers read the Parquet; this process reads what is not compacted yet.

    Args:
        url: as of `Table`, where the workers see it, too; a bucket needs Spark's s3a
        session: a pyspark.sql.SparkSession, or the address of a cluster such as spark://HOST:7077

    Raises:
        FleetError: as of `Table`, or pyspark is not installed
    """

    def __init__(self, url: str, session: Any) -> None:
        super().__init__(url)
        if isinstance(session, str):
            session = started_session(session)
        self._functions = importlib.import_module("pyspark.sql.functions")
        self._session = session
        session.conf.set("spark.sql.session.timeZone", "UTC")
        # As DuckDB's, and as in Parquet.
        session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
        self._session_view()

    def _session_view(self) -> None:
        frames = []
        if self._parts and self.store is not None:
            scheme = "s3a://" if self.store.filesystem else "file://"
            parts = current_parts(self.store).values()
            paths = [scheme + self.store.location(part) for part in parts]
            frames.append(self._session.read.option("mergeSchema", True).parquet(*paths))
        if self.fresh or not frames:
            rows = self.connection.sql("SELECT * EXCLUDE (file, why) FROM fresh").to_arrow_table()
            fresh = self._session.createDataFrame(rows)
            frames = [old.join(fresh, ["death_id", "day"], "left_anti") for old in frames] + [fresh]
        frame = frames[0]
        for other in frames[1:]:
            frame = frame.unionByName(other, allowMissingColumns=True)
        frame.createOrReplaceTempView("deaths")

    def query(self, sql: str, **parameters: Any) -> list[dict[str, Any]]:
        """As of `Table`, but run by Spark."""
        names = set(re.findall(r"\$(\w+)", sql)) & parameters.keys()
        arguments = {name: self._literal(parameters[name]) for name in names}
        found = self._session.sql(re.sub(r"\$(\w+)", r":\1", sql), args=arguments).collect()
        return [row.asDict(recursive=True) for row in found]

    def _literal(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        # A cast is refused, and an empty array would have no type.
        return self._functions.array(*map(self._functions.lit, value or [""]))
