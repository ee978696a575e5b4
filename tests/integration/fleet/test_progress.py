"""The progress bar: on a terminal only, and gone at the end."""

import io
import sys
from types import SimpleNamespace

import pytest


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind, shows", [(Terminal, True), (io.StringIO, False)])
def test_long_work_shows_how_far_it_is(monkeypatch, kind, shows):
    from oomrec.fleet import _progress

    clock = iter(range(1000))
    monkeypatch.setattr(sys, "stderr", kind())
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))

    assert list(_progress.with_progress("reading rows", [1, 2, 3, 4])) == [1, 2, 3, 4]

    drawn = sys.stderr.getvalue()
    assert ("reading rows" in drawn and "50 %" in drawn) == shows
    assert drawn.endswith("\r\033[K") or not shows and drawn == ""


def test_short_work_shows_none(monkeypatch):
    from oomrec.fleet import _progress

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(_progress, "time", SimpleNamespace(monotonic=lambda: 5.0))
    assert list(_progress.with_progress("reading rows", [1, 2])) == [1, 2]
    assert sys.stderr.getvalue() == ""
