"""ls: which process each bundle is of."""

import re

FAIL = "import sys; bytearray(1 << 50)"


def rows(oomrec, *words) -> list[list[str]]:
    """The table, without the lines of paths: program and pid are the last two columns."""
    page = oomrec("ls", *words)
    assert page.exit_code == 0 and max(map(len, page.stdout.splitlines())) <= 100, str(page)
    header, *lines = page.stdout.splitlines()
    assert header.split()[-2:] == ["program", "pid"]
    return [line.split() for line in lines[::2]]


def test_an_interpreter_is_listed_by_its_script_and_pid(oomrec, tmp_path):
    for name in ("train.py", "a_script_with_a_very_long_name.py"):
        (tmp_path / name).write_text(FAIL)
        oomrec("run", "--", "python3", "-u", tmp_path / name, "--epochs", "3")
    oomrec("run", "-c", FAIL)
    listed = oomrec.json("ls")["bundles"]
    scripts = [None, "a_script_with_a_very_long_name.py", "train.py"]
    assert [row["script"] for row in listed] == scripts
    assert all(row["program"].startswith("python3") for row in listed)
    for row in listed:
        assert row["pid"] == oomrec.json("show", row["bundle"])["process"]["pid"]
    names = [listed[0]["program"], "a_script_with_a…", "train.py"]
    pids = [str(row["pid"]) for row in listed]
    assert [row[-2:] for row in rows(oomrec)] == [list(pair) for pair in zip(names, pids)]


def test_names_of_options_alone_do_not_include_the_script(oomrec, tmp_path):
    (tmp_path / "train.py").write_text(FAIL)
    oomrec("run", "--arguments", "names", "--", "python3", "-u", "train.py", "--user", "me")
    (listed,) = oomrec.json("ls")["bundles"]
    assert listed["script"] is None
    ((*_, program, _),) = rows(oomrec)
    assert re.fullmatch(r"python3[.\d]*", program)
