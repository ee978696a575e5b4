#!/bin/bash
# Parquet that DuckDB writes with PARQUET_VERSION v2 cannot be read by Spark before 4.3, if it has a floating-point column of many
# different values.
#
# Seen with duckdb 2.0.1, pyspark 4.2.0 and 4.3.0 (PyPI), Java 17 (likewise pyspark 3.5.7, 4.0.1, 4.1.1): DuckDB encodes such a
# column by BYTE_STREAM_SPLIT, integers by DELTA_BINARY_PACKED. Spark's vectorized reader, its default, knows the second one in all
# of these and the first one since 4.3; before, the query fails. With spark.sql.parquet.enableVectorizedReader=false all read it.
# DuckDB's default is version 1, which every one reads. Needs Java 17 or newer; downloads 900 MB.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/duckdb"
"$work/duckdb/bin/pip" install -q --only-binary :all: duckdb==2.0.1
"$work/duckdb/bin/python" - "$work" <<'P' > "$work/seen"
import sys
import duckdb

table = f"{sys.argv[1]}/table.parquet"
duckdb.sql(f"COPY (SELECT i, i / 7 AS d FROM range(1000) AS t(i)) TO '{table}' (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd)")
print("duckdb", duckdb.__version__, *duckdb.sql(f"SELECT encodings FROM parquet_metadata('{table}') ORDER BY path_in_schema").fetchall())
P
for version in 4.2.0 4.3.0; do
  python3 -m venv "$work/$version"
  "$work/$version/bin/pip" install -q "pyspark==$version" 2> "$work/problems" || cat "$work/problems"
  "$work/$version/bin/python" - "$work" <<'P'
import sys
import pyspark
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for vectorized in ("true", "false"):
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    table = spark.read.parquet(f"{sys.argv[1]}/table.parquet")
    for column in ("i", "d"):
        try:
            seen = len(table.select(column).collect())
        except Exception as error:
            at = str(error).find("Unsupported encoding")
            seen = str(error)[at:].split("\n")[0] if at >= 0 else type(error).__name__
        print("spark", pyspark.__version__, "vectorized" if vectorized == "true" else "by row", column, seen)
P
done >> "$work/seen" 2> "$work/problems" || cat "$work/problems"
cat "$work/seen"
diff "$work/seen" - <<'S' && echo "as described"
duckdb 2.0.1 ('BYTE_STREAM_SPLIT',) ('DELTA_BINARY_PACKED',)
spark 4.2.0 vectorized i 1000
spark 4.2.0 vectorized d Unsupported encoding: BYTE_STREAM_SPLIT
spark 4.2.0 by row i 1000
spark 4.2.0 by row d 1000
spark 4.3.0 vectorized i 1000
spark 4.3.0 vectorized d 1000
spark 4.3.0 by row i 1000
spark 4.3.0 by row d 1000
S
