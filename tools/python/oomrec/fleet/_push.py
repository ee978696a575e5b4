"""Sends the memory in use at each death to a server of profiles: one request a death.

So one that the server refuses harms no other, and a request that is repeated has the same id.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import gzip
import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Callable, Iterator
from urllib.parse import urlsplit

from . import _profile
from ._errors import FleetError
from ._progress import with_progress
from ._queries import Window, ask
from ._show import deaths_by_id
from ._table import Table

TRIES = 5
FIRST_DELAY_S = 0.5  # doubles with each try
MOST_DELAY_S = 30.0
TIMEOUT_S = 30.0
MOST_ANSWER_BYTES = 64 << 10
DEATHS_AT_ONCE = 200
BUSY = frozenset({429, 503})  # the server has not taken it
UNCLEAR = frozenset({502, 504})  # from a proxy: it may have
FOR_ALL = frozenset({401, 403, 404, 405, 407})  # the address or the key is wrong


@dataclass(frozen=True)
class Receiver:
    """How one kind of server takes a profile.

    Attributes:
        path: of its URL, unless the user gives one
        body: of a row
        has_id: whether the request has an id by which a repetition can be told
    """

    path: str
    content: str
    body: Callable[[dict[str, Any]], bytes]
    has_id: bool


def _pyroscope_body(row: dict[str, Any]) -> bytes:
    pairs = [{"name": name, "value": value} for name, value in _profile.labels(row).items()]
    raw = base64.b64encode(_profile.pprof(row)).decode()
    sample = {"ID": str(_profile.profile_id(row)), "rawProfile": raw}
    return json.dumps({"series": [{"labels": pairs, "samples": [sample]}]}).encode()


def _parca_body(row: dict[str, Any]) -> bytes:
    named = {k: v for k, v in _profile.labels(row).items() if k != "__delta__"}  # Pyroscope's
    pairs = [{"name": name, "value": value} for name, value in named.items()]
    sample = {"rawProfile": base64.b64encode(_profile.pprof(row)).decode()}
    return json.dumps({"series": [{"labels": {"labels": pairs}, "samples": [sample]}]}).encode()


RECEIVERS = {
    "otlp": Receiver("/v1development/profiles", "application/x-protobuf", _profile.otlp, True),
    "pyroscope": Receiver("/push.v1.PusherService/Push", "application/json", _pyroscope_body, True),
    "parca": Receiver("/api/profiles/writeraw", "application/json", _parca_body, False),
}


class Refused(Exception):
    """The server does not take this death."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET of a page, whose status says nothing."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Client:
    """Sends bodies to one URL.

    Args:
        kind: a key of RECEIVERS
        url: http://HOST:PORT, or with a path of the user's own
        headers: of the user's own, such as Authorization
    """

    def __init__(self, kind: str, url: str, headers: dict[str, str]) -> None:
        try:
            parts = urlsplit(url)
        except ValueError as error:
            raise FleetError(f"{url} is no URL: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FleetError(f"{url} is not http://HOST:PORT or https://HOST")
        if parts.username is not None:
            raise FleetError("a password in the URL is seen by all users", "Use --headers FILE.")
        self.receiver = RECEIVERS[kind]
        self.url = url if parts.path.strip("/") else url.rstrip("/") + self.receiver.path
        self._headers = {"Content-Type": self.receiver.content, "User-Agent": "oomrec", **headers}
        if kind == "otlp":
            self._headers["Content-Encoding"] = "gzip"
        self._opener = urllib.request.build_opener(_NoRedirects)

    def send(self, row: dict[str, Any]) -> None:
        """Sends the profile of a row, repeatedly while the server is busy.

        Raises:
            Refused: the server does not take this one
            FleetError: it cannot be reached, or takes none
        """
        body = self.receiver.body(row)
        if "Content-Encoding" in self._headers:
            body = gzip.compress(body, mtime=0)
        for left in reversed(range(TRIES)):
            delay = min(FIRST_DELAY_S * 2 ** (TRIES - 1 - left), MOST_DELAY_S)
            request = urllib.request.Request(self.url, body, self._headers, method="POST")
            try:
                with self._opener.open(request, timeout=TIMEOUT_S) as response:
                    self._check_taken(response.read(MOST_ANSWER_BYTES))
                    return
            except urllib.error.HTTPError as error:
                delay = self._delay_of(error, delay)
                why = f"{error.code} {_text_of(error)}"
                again = error.code in BUSY or (error.code in UNCLEAR and self.receiver.has_id)
                if error.code in FOR_ALL or 300 <= error.code < 400:
                    advice = "Is it the right URL and key?"
                    raise FleetError(f"{self.url} answers {why}", advice) from None
                if not again and error.code not in UNCLEAR:
                    raise Refused(why) from None
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                why = f"{reason}" or type(reason).__name__
                # URLError: before the request was sent as a whole.
                again = self.receiver.has_id or isinstance(error, urllib.error.URLError)
            if not again:
                may = f"Death {row['death_id']} may have arrived."
                advice = f"{may} This server cannot tell a repetition, so it is not sent again."
                raise FleetError(f"{self.url} did not answer a whole request: {why}", advice)
            if left:
                time.sleep(delay)
        raise FleetError(f"{self.url} cannot be reached ({TRIES} times tried): {why}")

    def _check_taken(self, answer: bytes) -> None:
        """OTLP's answer may be that it took nothing."""
        if self.receiver is not RECEIVERS["otlp"]:
            return
        with contextlib.suppress(ValueError):
            for number, value in _profile.fields_of(answer):
                if number == 1 and isinstance(value, bytes):  # partial_success
                    found = dict(_profile.fields_of(value))
                    if found.get(1):
                        raise Refused(_line(found.get(2, b"")) or "refused without a reason")

    @staticmethod
    def _delay_of(error: urllib.error.HTTPError, delay: float) -> float:
        with contextlib.suppress(TypeError, ValueError):
            return min(max(float(error.headers["Retry-After"]), 0.0), MOST_DELAY_S)
        return delay


def _line(text: Any) -> str:
    data = text if isinstance(text, bytes) else b""
    return " ".join(data.decode(errors="replace").split())[:300]


def _text_of(error: urllib.error.HTTPError) -> str:
    """What the server says: text, JSON with a message, or OTLP's Status."""
    try:
        data = error.read(MOST_ANSWER_BYTES)
    except OSError:
        data = b""
    if "protobuf" in (error.headers["Content-Type"] or ""):
        with contextlib.suppress(ValueError):
            data = next((v for n, v in _profile.fields_of(data) if n == 2 and v), b"")  # type: ignore[assignment]
    with contextlib.suppress(ValueError):
        found = json.loads(data)
        if isinstance(found, dict) and isinstance(found.get("message"), str):
            data = found["message"].encode(errors="replace")
    return _line(data) or str(error.reason)


def headers_in(path: str | None) -> dict[str, str]:
    """The lines "Name: value" of a file.

    Raises:
        FleetError: it cannot be read, or has another line
    """
    if path is None:
        return {}
    try:
        with open(path, encoding="latin-1") as stream:
            lines = [line.strip() for line in stream if line.strip()]
    except OSError as error:
        raise FleetError(f"{path} cannot be read: {error.strerror}") from error
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.replace("-", "").isalnum():
            raise FleetError(f"{path} has a line that is not Name: value")
        headers[name] = value.strip()
    return headers


@contextlib.contextmanager
def remembered(path: str | None) -> Iterator[tuple[set[str], Callable[[str], None]]]:
    """The deaths in a file of those that were sent, and a function that adds one."""
    if path is None:
        yield set(), lambda _: None
        return
    try:
        stream = open(path, "a+", encoding="ascii", errors="replace")  # noqa: SIM115 closed below
    except OSError as error:
        raise FleetError(f"{path} cannot be written: {error.strerror}") from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FleetError(f"{path} is in use by another process", exit_code=1) from None
        stream.seek(0)
        sent = {line.strip() for line in stream}

        def add(death_id: str) -> None:
            stream.write(f"{death_id}\n")
            stream.flush()

        yield sent, add


def push(
    table: Table, window: Window, client: Client, sent_file: str | None = None
) -> dict[str, Any]:
    """Sends the deaths of a window.

    Args:
        sent_file: a file of deaths that were sent; they are left out, and those sent now are added

    Returns:
        {"deaths", "pushed", "sent_before", "without_holders", "refused": {death_id: reason}}

    Raises:
        FleetError: the server cannot be reached, or takes none
    """
    refused: dict[str, str] = {}
    counts = {"pushed": 0, "sent_before": 0, "without_holders": 0}
    found = ask(table, "pushed", window)
    with remembered(sent_file) as (sent, add):
        for row in with_progress("pushing", _rows(table, found, sent), len(found)):
            if row is None:
                counts["sent_before"] += 1
            elif not any(holder and holder["bytes"] for holder in row["holders"] or []):
                counts["without_holders"] += 1
            else:
                try:
                    client.send(row)
                except Refused as error:
                    refused[row["death_id"]] = str(error)
                    continue
                counts["pushed"] += 1
                add(row["death_id"])
    return {"deaths": len(found), **counts, "refused": refused}


def _rows(
    table: Table, found: list[dict[str, Any]], sent: set[str]
) -> Iterator[dict[str, Any] | None]:
    """Each death's row; None if it was sent before."""
    for at in range(0, len(found), DEATHS_AT_ONCE):
        new = [each for each in found[at : at + DEATHS_AT_ONCE] if each["death_id"] not in sent]
        rows = deaths_by_id(table, [(each["death_id"], each["day"]) for each in new])
        yield from (rows[each["death_id"]] for each in new)
        yield from [None] * (len(found[at : at + DEATHS_AT_ONCE]) - len(new))
