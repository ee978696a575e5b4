"""`oomrec fleet`: its commands, their options and their text."""

from __future__ import annotations

import argparse
import datetime as dt
import json
import sys
from typing import Any, Callable

from . import _queries
from ._compact import compact
from ._errors import FleetError
from ._gate import gate
from ._queries import Window
from ._show import chosen_death, death_text, signature_named, signature_report, signature_text
from ._sizes import Size
from ._table import Table, time_of
from ._text import coloured, counted, printable, share_text, size_text, table_text

STATES = {"new": "▲ NEW", "regressed": "▲ again", "ongoing": ""}
CAUSES = {"limit_too_low": "limit too low", "giant_request": "one giant request", None: ""}
Command = Callable[[argparse.Namespace], int]
URL_HELP = "a folder of bundles or of rows, or s3://BUCKET/PREFIX"


def main(words: list[str]) -> int:
    try:
        options = parser().parse_args(words)
        code: int = options.function(options)
        sys.stdout.flush()
        return code
    except FleetError as error:
        print(f"oomrec fleet: {error}", *filter(None, [error.advice]), sep="\n  ", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # else Python reports it once more at its end
        return 0
    except KeyboardInterrupt:
        return 130


def now() -> str:
    return dt.datetime.now(dt.timezone.utc).isoformat()


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="oomrec fleet",
        description="Explains the memory deaths of many machines together: docs/fleet.md.",
    )
    commands = made.add_subparsers(metavar="COMMAND", required=True)

    def add(
        name: str, function: Command, summary: str, since: str | None
    ) -> argparse.ArgumentParser:
        about = summary[0].upper() + summary[1:] + "."
        command = commands.add_parser(name, help=summary, description=about)
        option = command.add_argument
        command.set_defaults(function=function, usual_since=since)
        if function is show_command:
            what = "its number in top, its name, or a death's id"
            option("what", metavar="N|SIGNATURE|DEATH", help=what)
        option("url", metavar="URL", nargs="?", default="oom_dumps", help=f"{URL_HELP} (oom_dumps)")
        if since is not None:
            every = f"24h, 7d, 4w or a date ({since}; of bundles or a file of rows: all)"
            engines = "duckdb, or spark://HOST:PORT (duckdb)"
            option("--since", metavar="TIME", help=every)
            option("--until", metavar="TIME", default=now(), help="likewise (now)")
            option("--on", metavar="ENGINE", default="duckdb", help=engines)
        option("--json", action="store_true", help="print JSON")
        return command

    for name, summary in (
        ("top", "the causes that cost most memory and time"),
        ("new", "causes that were not there before"),
        ("regressed", "causes that came back, or became twice as frequent"),
    ):
        command = add(name, signatures_command, summary, "7d")
        command.set_defaults(state="any" if name == "top" else name)
        command.add_argument(
            "-n", "--number", type=int, default=20, metavar="N", help="at most N (20)"
        )
    add("show", show_command, "one cause: what holds the memory, where, since when", "7d")
    add("sizes", sizes_command, "the memory that each service needs, and the limit to set", "4w")
    command = add("report", report_command, "one HTML page for a browser, offline", "7d")
    page = "the page (triage.html)"
    command.add_argument("-o", "--output", default="triage.html", metavar="FILE", help=page)
    summary = "exit code 1 if a release has a new cause, or needs clearly more"
    option = add("gate", gate_command, summary, "4w").add_argument
    option("--base", required=True, metavar="RELEASE", help="the release to compare with")
    option("--head", required=True, metavar="RELEASE", help="the release that is judged")
    growth = "by which the p95 of a need may rise (10)"
    option("--growth", type=float, default=10, metavar="PERCENT", help=growth)
    command = add("push", push_command, "send each death's memory to a server of profiles", "24h")
    to = command.add_mutually_exclusive_group(required=True)
    to.add_argument("--otlp", metavar="HTTP", help="OpenTelemetry's profiles over HTTP")
    to.add_argument("--pyroscope", metavar="HTTP", help="Grafana Pyroscope, or Alloy")
    to.add_argument("--parca", metavar="HTTP", help="Parca")
    command.add_argument(
        "--headers", metavar="FILE", help="lines such as Authorization: Bearer SECRET"
    )
    command.add_argument(
        "--sent", metavar="FILE", help="remembers what was sent, and sends nothing twice"
    )
    add("compact", compact_command, "turn rows into Parquet by day", None)
    command = add("reextract", reextract_command, "make the rows of shipped bundles anew", None)
    engines = "local, or the address of a cluster: dask://, ray://, spark:// (local)"
    command.add_argument("--on", default="local", metavar="ENGINE", help=engines)
    return made


def opened(options: argparse.Namespace) -> tuple[Table, Window]:
    table = table_of(options)
    if why := table.rejected.text():
        print(f"oomrec fleet: {why}", file=sys.stderr)
    if table.renewed:
        what = f"{counted(table.renewed, 'row')} got the signatures of today's rules"
        print(f"oomrec fleet: {what}; compact does that once for all", file=sys.stderr)
    return table, window_of(options, table)


def table_of(options: argparse.Namespace) -> Table:
    if options.on == "duckdb":
        return Table(options.url)
    if not options.on.startswith("spark://"):
        why = f"{options.on}: this engine is unknown"
        raise FleetError(why, "Give duckdb or spark://HOST:PORT.")
    from ._spark import SparkTable

    return SparkTable(options.url, options.on)


def window_of(options: argparse.Namespace, table: Table) -> Window:
    current = dt.datetime.now(dt.timezone.utc).replace(tzinfo=None)
    until = time_of(options.until, current)
    if options.since is None and not table.has_days:
        since = table.query_value("SELECT min(time) FROM deaths")
    else:
        since = time_of(options.since or options.usual_since, until)
    window = Window(since, until)
    if window.since >= window.until:
        raise FleetError(f"{since} is not before --until {options.until}")
    return window


def emit(options: argparse.Namespace, value: dict[str, Any], text: str) -> None:
    """Prints the value as JSON if that was asked for, else the text."""

    def written(other: Any) -> str:
        is_time = isinstance(other, dt.datetime)
        return other.isoformat(timespec="milliseconds") + "Z" if is_time else str(other)

    if options.json:
        value = {"schema_version": 1, **value}
        text = json.dumps(value, default=written, indent=2, allow_nan=False)
    print(text)


def signatures_command(options: argparse.Namespace) -> int:
    table, window = opened(options)
    found = _queries.signatures(table, window, options.state, options.number)
    total, before = _queries.totals(table, window), _queries.totals(table, window.before())
    services = _queries.facets(table, window, [row["signature"] for row in found], ("service",))
    asked = any(row["cause"] == "limit_too_low" for row in found)
    sizes = {size.service: size for size in _queries.sizes(table, window)} if asked else {}
    for row in found:
        of = services.get(row["signature"], {}).get("service", {"different": 0, "values": []})
        row["services"] = [name for name, _ in of["values"]]
        row["service_count"] = of["different"]
        size = sizes.get(row["services"][0]) if row["services"] else None
        helps = row["cause"] == "limit_too_low"
        row["recommended_bytes"] = size.recommended_bytes if size and helps else None
    dates = {"since": window.since, "until": window.until}
    head = ("#", "", "largest holder", "deaths", "GiB h", "share", "service", "")
    rows = [signature_row(number, row) for number, row in enumerate(found, 1)]
    listed = [table_text(head, rows, right=(0, 3, 4, 5))] if rows else []
    result = {"window": dates, "total": total, "before": before, "signatures": found}
    emit(options, result, "\n".join([heading(total, before), *listed]))
    return 0 if found else 1


def heading(total: dict[str, Any], before: dict[str, Any]) -> str:
    parts = [
        counted(total["deaths"], "memory death"),
        counted(total["signatures"], "signature"),
        counted(total["hosts"], "host"),
        f"{total['lost_gib_hours']:,.0f} GiB hours lost",
    ]
    if total["followers"]:
        parts.append(f"{total['followers']:,} more died with them")
    text = f"{', '.join(parts)} (the time before: {before['deaths']:,}, {before['signatures']:,})"
    return coloured(text, "bold")


def signature_row(number: int, row: dict[str, Any]) -> tuple[str, ...]:
    others = row["service_count"] - 1
    service = printable(row["services"][0], 24) if row["services"] else "-"
    advice = f" → {size_text(row['recommended_bytes'])}" if row["recommended_bytes"] else ""
    return (
        str(number),
        STATES[row["state"]],
        printable(row["title"] or row["signature"], 70),
        f"{row['deaths']:,}",
        f"{row['lost_gib_hours']:,.0f}",
        share_text(row["top_share"]),
        f"{service} +{others}" if others > 0 else service,
        CAUSES.get(row["cause"], row["cause"]) + advice,
    )


def show_command(options: argparse.Namespace) -> int:
    table, window = opened(options)
    death = chosen_death(table, window, options.what)
    if death is not None:
        emit(options, death, death_text(death))
    else:
        shown = signature_report(table, window, signature_named(table, window, options.what))
        emit(options, shown, signature_text(shown))
    return 0


def sizes_command(options: argparse.Namespace) -> int:
    table, window = opened(options)
    found = _queries.sizes(table, window)
    head = "service limit p50 p95 p99 lives deaths set confidence why".split()
    rows = [size_row(size) for size in found]
    text = table_text(head, rows, right=range(1, 8))
    emit(options, {"services": [size.as_json() for size in found]}, text)
    return 0 if found else 1


def size_row(size: Size) -> tuple[str, ...]:
    needs = (size.limit_bytes, size.need_p50_bytes, size.need_p95_bytes, size.need_p99_bytes)
    more = f"; more than {size_text(size.more_than_bytes)}" if size.more_than_bytes else ""
    return (
        printable(size.service, 30),
        *map(size_text, needs),
        f"{size.lives:,}",
        f"{size.deaths:,}",
        size_text(size.recommended_bytes) if size.recommended_bytes else "no answer",
        size.confidence,
        size.why + more,
    )


def report_command(options: argparse.Namespace) -> int:
    from ._page import write_page

    table, window = opened(options)
    written = write_page(table, window, options.output)
    text = f"{printable(options.output)}: {size_text(written)}"
    emit(options, {"output": options.output, "bytes": written}, text)
    return 0


def gate_command(options: argparse.Namespace) -> int:
    table, window = opened(options)
    result = gate(table, window, options.base, options.head, options.growth / 100)
    lines = []
    for row in result["new_signatures"]:
        title = printable(row["title"] or row["signature"])
        lines.append(f"new: {title}, {counted(row['deaths'], 'death')}")
    for row in result["grown"]:
        after = row["head_p95_bytes"]
        what = size_text(after) if after else "more than its limit"
        change = f"p95 {size_text(row['base_p95_bytes'])} → {what}"
        lines.append(f"grown: {printable(row['service'])}: {change}")
    if result["too_few"]:
        few = ", ".join(printable(each, 30) for each in result["too_few"][:10])
        lines.append(f"too few processes to compare: {few}")
    passed = result["passed"]
    lines.append(coloured("passed", "good") if passed else coloured("failed", "alarm"))
    emit(options, result, "\n".join(lines))
    return 0 if passed else 1


def push_command(options: argparse.Namespace) -> int:
    from ._push import RECEIVERS, Client, headers_in, push

    kind = next(name for name in RECEIVERS if getattr(options, name) is not None)
    client = Client(kind, getattr(options, kind), headers_in(options.headers))
    table, window = opened(options)
    result = push(table, window, client, options.sent)
    parts = [f"{counted(result['pushed'], 'death')} sent to {printable(client.url)}"]
    for key, what in (("sent_before", "sent before"), ("without_holders", "without a holder")):
        if result[key]:
            parts.append(f"{result[key]:,} {what}")
    emit(options, result, ", ".join(parts))
    reasons: dict[str, list[str]] = {}
    for death_id, reason in result["refused"].items():
        reasons.setdefault(reason, []).append(death_id)
    for reason, ids in list(reasons.items())[:5]:
        what = f"{counted(len(ids), 'death')} refused, such as {ids[0]}: {printable(reason, 300)}"
        print(f"oomrec fleet: {what}", file=sys.stderr)
    return 1 if result["refused"] or not result["deaths"] else 0


def compact_command(options: argparse.Namespace) -> int:
    result = compact(options.url)
    done = f"{counted(result['rows'], 'row')} of {counted(result['days'], 'day')} compacted"
    rejected = [f"; {count:,} {why}" for why, count in sorted(result["rejected"].items())]
    emit(options, result, "".join([done, *rejected]))
    return 0


def reextract_command(options: argparse.Namespace) -> int:
    from ._reextract import reextract

    result = reextract(options.url, options.on)
    done = f"{counted(result['rows'], 'row')} of {counted(result['bundles'], 'bundle')}"
    lines = [f"{done}; oomrec fleet compact puts them into the table"]
    for key, reason in sorted(result["errors"].items())[:10]:
        lines.append(f"  {printable(key)}: {printable(reason)}")
    emit(options, result, "\n".join(lines))
    return 1 if result["errors"] else 0
