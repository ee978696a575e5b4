#!/bin/bash
# DuckDB's OutOfMemoryException has another full name since 1.4, and is no MemoryError in any release.
#
# Seen with duckdb 1.2.2, 1.4.4 and 2.0.1 (PyPI), Python 3.11: the class that `duckdb.OutOfMemoryException` names calls itself
# duckdb.duckdb.OutOfMemoryException in 1.2.2 and _duckdb.OutOfMemoryException from 1.4.4 on; `except MemoryError` does not catch
# it, its bases are database errors. A traceback's last line has the full name. A rule that looks for "duckdb." before the name,
# or for MemoryError, files the same failure under two names, or not under lack of memory at all.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
for version in 1.2.2 1.4.4 2.0.1; do
  python3.11 -m venv "$work/$version"
  "$work/$version/bin/pip" install -q --only-binary :all: "duckdb==$version"
  "$work/$version/bin/python" - <<'P'
import traceback
import duckdb
database = duckdb.connect(config={"memory_limit": "20MB", "temp_directory": "", "threads": "1"})
query = "select count(*) from (select distinct repeat('x', 100) || range::varchar from range(3000000))"
try:
    database.execute(query).fetchall()
except Exception as error:
    last = traceback.format_exception_only(type(error), error)[0]
    print(duckdb.__version__, last.split(":")[0], "MemoryError:", isinstance(error, MemoryError),
          "OperationalError:", isinstance(error, duckdb.OperationalError))
P
done > "$work/seen" 2> "$work/problems" || cat "$work/problems"
cat "$work/seen"
diff "$work/seen" - <<'S' && echo "as described"
1.2.2 duckdb.duckdb.OutOfMemoryException MemoryError: False OperationalError: True
1.4.4 _duckdb.OutOfMemoryException MemoryError: False OperationalError: True
2.0.1 _duckdb.OutOfMemoryException MemoryError: False OperationalError: True
S
