"""`oomrec run --fail`: chosen requests fail as they would without memory."""

import glob

import pytest


def asks(oomrec, victim, rule, *words, **options):
    return oomrec("run", "--fail", rule, "--", victim("asks"), *words, **options)


@pytest.mark.parametrize(
    "kind, error",
    [
        ("malloc", "ENOMEM"),
        ("calloc", "ENOMEM"),
        ("realloc", "ENOMEM"),
        ("posix_memalign", "ENOMEM"),
        ("mmap", "ENOMEM"),
        ("pthread_create", "EAGAIN"),
        ("fork", "EAGAIN"),
    ],
)
def test_the_nth_call_fails_once(oomrec, victim, kind, error):
    size = ",min=5000" if kind not in ("pthread_create", "fork") else ""
    run = asks(oomrec, victim, f"{kind}:nth=3{size}", kind, 9)
    assert run.stdout == f"3 {error}\n", str(run)
    shown = oomrec.json("show", run.only_bundle())
    assert (shown["trigger"], shown["verdict"]["code"]) == ("allocation_failed", "injected")
    assert (shown["request"]["api"], shown["request"]["error"]) == (kind, error)
    assert "main" in [frame["function"] for frame in shown["request"]["stack"]]
    assert (
        f"the rule {kind}:nth=3{size} of --fail (OOMREC_FAIL) refused it"
        in (shown["verdict"]["evidence"][0])
    )


def test_without_rules_nothing_fails(oomrec, victim):
    run = oomrec("run", "--", victim("asks"), "malloc", 2000, env={"OOMREC_FAIL": ""})
    assert run.stdout == "" and run.bundles() == []


def test_the_variable_alone_suffices(preload, victim):
    run = preload(victim("asks"), "malloc", 5, env={"OOMREC_FAIL": "malloc:nth=2,min=5000"})
    assert run.stdout == "2 ENOMEM\n", str(run)


@pytest.mark.parametrize("mode", ["sampled", "exact"])
def test_a_seeded_chance_fails_the_same_calls(oomrec, victim, mode):
    def failed_calls(seed):
        rule = f"malloc:p=0.05,seed={seed},min=5000"
        run = asks(oomrec, victim, rule, "malloc", 2000, env={"OOMREC_MODE": mode})
        return run.stdout.splitlines()

    first = failed_calls(7)
    assert 60 < len(first) < 140
    assert failed_calls(7) == first and failed_calls(8) != first


def test_a_size_condition(oomrec, victim):
    assert asks(oomrec, victim, "heap:min=5002", "malloc", 3).stdout == ""
    assert asks(oomrec, victim, "heap:min=5001", "malloc", 1).stdout == "1 ENOMEM\n"


def test_each_rule_has_its_own_count(oomrec, victim):
    run = asks(oomrec, victim, "malloc:nth=2,min=5000;heap:nth=5,min=5000", "malloc", 6)
    assert run.stdout == "2 ENOMEM\n5 ENOMEM\n", str(run)


def test_a_function_on_the_stack(oomrec, victim):
    """strdup's malloc fails, the program's own calls do not."""
    run = asks(oomrec, victim, "site=libc!strdup", "strdup", 2)
    assert run.stdout == "1 ENOMEM\n2 ENOMEM\n", str(run)
    assert asks(oomrec, victim, "site=libc.so.6!strdup,nth=2", "strdup", 3).stdout == "2 ENOMEM\n"
    assert asks(oomrec, victim, "site=libc!strdup", "malloc", 2).stdout == ""
    assert asks(oomrec, victim, "site=libm!strdup", "strdup", 2).stdout == ""


@pytest.mark.parametrize(
    "rule, refused",
    [
        ("site=asks.py:5", [f"make {i}" for i in range(1, 6)]),
        ("site=asks.py:5,nth=3,min=900K", ["make 3"]),
        ("malloc:site=asks.py:9,nth=2,min=1M", []),
        ("heap:site=victims/python/asks.py:15,min=900K,nth=4", ["make_other 2"]),
    ],
)
def test_a_line_of_python(oomrec, victim, python, rule, refused):
    """The line itself, or anything it calls. Line 15 calls both."""
    run = oomrec("run", "--fail", rule, "--", python(), victim("python/asks.py"))
    assert run.stdout.splitlines() == [*refused, "survived"], str(run)
    verdicts = [oomrec.json("show", bundle)["verdict"]["code"] for bundle in run.bundles()]
    assert set(verdicts) == ({"injected"} if refused else set())


@pytest.mark.parametrize(
    "rule, granted",
    [
        (
            "operator_new:nth=2",
            [1, 2, 3, 4, 5],
        ),  # the retry after the handler is not a new call
        ("operator_new:min=6M", [1]),
        ("malloc:min=6M", []),
    ],
)
def test_operator_new_calls_its_handler_and_throws(oomrec, victim, rule, granted):
    run = oomrec("run", "--fail", rule, "--", victim("new_failure"))
    lines = [f"{i} {'granted' if i in granted else 'bad_alloc'}" for i in range(1, 6)]
    assert run.stdout.splitlines() == [*lines, "handled 1"], str(run)
    assert oomrec.json("show", run.bundles()[0])["verdict"]["code"] == "injected"


def test_an_allocator_that_defines_operator_new(oomrec, victim):
    jemalloc = (glob.glob("/usr/lib/*/libjemalloc.so.2") or pytest.skip("no jemalloc"))[0]
    rule = "operator_new:nth=2,min=6M"
    env = {"LD_PRELOAD": jemalloc}
    run = oomrec("run", "--fail", rule, "--", victim("new_failure"), env=env)
    assert run.stdout.splitlines()[1] == "2 bad_alloc", str(run)
    assert oomrec.json("show", run.only_bundle())["verdict"]["code"] == "injected"


@pytest.mark.parametrize("rule, plain", [("heap:min=64M", 2), ("operator_new:min=64M", -1)])
def test_a_plugins_new_calls_its_handler_and_throws(oomrec, victim, python, rule, plain):
    """A C program that loads a C++ library: handler and exception belong to the library."""
    script, size = victim("python/new_in_plugin.py"), (64 << 20) + 163
    words = [python(), script, victim("cxx_plugin.so"), size]
    run = oomrec("run", "--fail", rule, "--", *words)
    assert run.stdout.splitlines()[0] == f"plain {plain}", str(run)
    shown = oomrec.json("show", run.bundles()[0])
    assert (shown["verdict"]["code"], shown["request"]["api"]) == ("injected", "operator_new")


def test_a_plugins_new_throws_at_the_nth_call(oomrec, victim, python):
    """The retry by its C++ library fails too, and is not counted."""
    script = (
        "import ctypes, sys\n"
        "throws = ctypes.CDLL(sys.argv[1]).throwing_new\n"
        "print([throws(ctypes.c_size_t(7 << 20)) for _ in range(4)])\n"
    )
    words = [python(), "-c", script, victim("cxx_plugin.so")]
    run = oomrec("run", "--fail", "operator_new:nth=2,min=7M", "--", *words)
    assert run.stdout == "[0, 1, 0, 0]\n", str(run)
    assert oomrec.json("show", run.only_bundle())["request"]["api"] == "operator_new"


def test_a_forked_child_restarts_the_counts(oomrec, python):
    script = (
        "import mmap, os\n"
        "def tries():\n"
        "    refused = []\n"
        "    for i in range(1, 5):\n"
        "        try: mmap.mmap(-1, 123 << 20)\n"
        "        except OSError: refused.append(i)\n"
        "    return refused\n"
        "print('parent', tries(), flush=True)\n"
        "if os.fork() == 0:\n"
        "    print('child', tries(), flush=True)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    rule = "mmap:nth=3,min=123M"
    run = oomrec("run", "--fail", rule, "--", python(), "-c", script)
    assert run.stdout == "parent [3]\nchild [3]\n", str(run)


@pytest.mark.parametrize(
    "rule", ["maloc:nth=1", "malloc:nth=0", "mmap:p=2", "site=train.py", "malloc:nth=1,p=0.5"]
)
def test_an_invalid_rule(oomrec, preload, victim, rule):
    run = oomrec("run", "--fail", rule, "--", victim("hello"))
    assert run.exit_code == 125 and run.stdout == ""
    what, advice = run.stderr.splitlines()
    assert what == f"oomrec run: invalid value '{rule}' for --fail"
    assert "malloc:nth=1000" in advice
    run = preload(victim("hello"), env={"OOMREC_FAIL": rule})
    assert run.exit_code == 0 and f"ignoring OOMREC_FAIL={rule}: expected rules" in run.stderr
