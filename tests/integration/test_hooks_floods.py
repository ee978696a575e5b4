"""Floods of failures: each is counted, a few get bundles, and the program hardly slows down."""

from __future__ import annotations

import json
import re

LIMIT = 64 << 20
TOO_MUCH = 1 << 46
ROUNDS = 200_000
MOST_US_EACH = 5  # measured: 0.4


def flood_of(run) -> tuple[int, int]:
    refused, microseconds = re.fullmatch(r"refused (\d+), (\d+) us\n", run.stdout).groups()
    return int(refused), int(microseconds)


def test_a_flood_of_failures(oomrec, plain, preload, victim):
    """40 stacks in turn, all at one moment: one bundle tells them all."""
    _, alone_us = flood_of(plain(victim("flood"), 1 << 60))
    run = preload(victim("flood"), LIMIT + 1, env={"OOMREC_LIMIT": LIMIT, "OOMREC_MAX_DUMPS": 0})
    refused, recorded_us = flood_of(run)
    assert refused == ROUNDS and run.exit_code == 0
    assert recorded_us - alone_us < MOST_US_EACH * ROUNDS, (alone_us, recorded_us)
    [bundle] = run.bundles()
    told = oomrec.json("show", bundle)
    assert told["verdict"]["code"] == "soft_limit" and told["outcome"] == "recovered"
    request = told["request"]
    assert request["size"] == LIMIT + 1
    assert request["repeats"] == ROUNDS // 40 - 1
    assert request["aftershocks"]["count"] == ROUNDS // 40 * 39
    page = oomrec("show", bundle).stdout
    assert re.search(r"4,?999 repeats", page), page
    assert re.search(r"195,?000 further requests were refused afterwards", page), page


def test_64_threads_that_fail_at_once(preload, victim):
    run = preload(victim("threads_flood"), env={"OOMREC_MAX_DUMPS": 0})
    assert run.stdout == "64 refused\n" and run.exit_code == 0, str(run)
    end = run.bundle_at("end")
    events = json.loads((end / "events.json").read_text())
    refused = [event for event in events if event["event_type"] == "error"]
    assert {event["size"] for event in refused} == {TOO_MUCH + 1000 + 2 * i for i in range(64)}
    assert len({event["thread"] for event in refused}) == 64
    # One stack in one group of threads: one failure has a bundle, the others are repeats.
    [written] = [bundle for bundle in run.bundles() if bundle != end]
    request = json.loads((written / "metadata.json").read_text())["request"]
    number = (request["size"] - TOO_MUCH - 1000) // 2
    assert request["thread"]["name"] == f"worker {number}"
