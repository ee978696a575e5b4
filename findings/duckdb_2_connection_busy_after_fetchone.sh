#!/bin/bash
# In DuckDB 2.0 a connection refuses its next query after fetchone(), even of a result that has one row.
#
# Seen with duckdb 1.5.5 and 2.0.1 (PyPI), Python 3.11: after `execute("select 42").fetchone()` the same connection's `sql()` works
# in 1.5.5. In 2.0.1 it raises ResourceInUseException when its rows are read: the result of execute() counts as unfinished until a
# fetch has returned no rows. `fetchall()` finishes it, and so does a second fetchone(), which returns None.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
for version in 1.5.5 2.0.1; do
  python3.11 -m venv "$work/$version"
  "$work/$version/bin/pip" install -q --only-binary :all: "duckdb==$version"
  "$work/$version/bin/python" - <<'P'
import duckdb

def after(*fetches):
    connection = duckdb.connect()
    connection.execute("select 42")
    for fetch in fetches:
        getattr(connection, fetch)()
    try:
        return connection.sql("select 1").fetchall()[0][0]
    except duckdb.Error as error:
        return type(error).__name__

print(duckdb.__version__, after("fetchone"), after("fetchone", "fetchone"), after("fetchall"))
P
done > "$work/seen" 2> "$work/problems" || cat "$work/problems"
cat "$work/seen"
diff "$work/seen" - <<'S' && echo "as described"
1.5.5 1 1 1
2.0.1 ResourceInUseException 1 1
S
