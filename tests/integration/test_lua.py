"""Memory of a program in Lua is on the function and line that asked for it."""

import re
from collections import Counter

import pytest
from conftest import built, written

INTERPRETERS = [
    pytest.param(name, marks=pytest.mark.needs_program(name))
    for name in ("lua5.3", "lua5.4", "luajit")
]

# Each function keeps strings, no two of them the same, and counts their bytes itself. The names are those of the lines that
# do: the interpreter calls them from itself, from C, from a coroutine, and for an operator.
PROGRAM = """
local kept, counted = {}, {}
local function keep(name, text)
  kept[#kept + 1] = text
  counted[name] = (counted[name] or 0) + #text
end
local function plain(count)
  for i = 1, count do
    keep("plain", string.rep("x", 20000) .. #kept) -- plain
  end
end
local function compare(a, b)
  keep("compare", string.rep("c", 15000) .. #kept) -- compare
  return a < b
end
local meta = setmetatable({}, {__index = function(_, key)
  local text = string.rep("i", 10000) .. key -- index
  keep("index", text)
  return text
end})
local worker = coroutine.wrap(function(count)
  while true do
    for i = 1, count do
      keep("worker", string.rep("w", 25000) .. #kept) -- worker
    end
    coroutine.yield()
  end
end)
local sleeper = coroutine.wrap(function() plain(1) coroutine.yield() plain(1) end)
local function deep(levels)
  if levels == 0 then return plain(100) end
  deep(levels - 1)
  return levels
end

sleeper() -- a coroutine that waits holds nothing more
plain(400)
for _ = 1, 4 do worker(100) end
local numbers = {}
for i = 1, 200 do numbers[i] = i * 37 % 201 end
table.sort(numbers, compare)
for i = 1, 500 do local _ = meta["key" .. i] end
pcall(plain, 100)
deep(60)
collectgarbage()
for name, bytes in pairs(counted) do io.stdout:write(name, " ", bytes, "\\n") end
io.stdout:flush()
os.exit(0)
"""


def bytes_by_mark(shown: dict, program: str) -> Counter:
    """Live bytes by the word in the comment of the innermost line of Lua."""
    marks = {
        number: mark[1]
        for number, line in enumerate(program.splitlines(), 1)
        if (mark := re.search(r"-- (\w+)$", line))
    }
    live: Counter = Counter()
    for holder in shown["holders"]:
        lines = [
            frame["line"]
            for frame in holder["stack"]
            if (frame["file"] or "").endswith("keeps.lua") and frame["line"]
        ]
        live[marks.get(lines[0]) if lines else None] += holder["bytes"]
    return live


@pytest.mark.parametrize("interpreter", INTERPRETERS)
@pytest.mark.parametrize("options", [["--mode", "exact"], ["--sample-interval", "16K"]])
def test_bytes_are_on_their_line(oomrec, tmp_path, interpreter, options):
    # LuaJIT maps memory for many strings at once, so it counts as the line that asked for more.
    (tmp_path / "keeps.lua").write_text(PROGRAM)
    program = [interpreter, *(["-joff"] if interpreter == "luajit" else []), "keeps.lua"]
    run = oomrec("run", *options, "--dump-at-exit", "--", *program, exits=0)
    counted = {name: int(count) for name, count in re.findall(r"(\w+) (\d+)", run.stdout)}
    assert set(counted) == {"plain", "compare", "index", "worker"}, run.stdout
    shown = oomrec.json("show", "--at", "end", run.only_bundle())
    assert shown["recording"]["truncated_stacks"] == 0
    live = bytes_by_mark(shown, PROGRAM)
    allowed = 0.03 if options[1] == "exact" else 0.35
    for name, count in counted.items() if interpreter != "luajit" else ():
        assert abs(live[name] - count) < allowed * count + 200_000, (name, live, counted)
    of_lua = sum(bytes for mark, bytes in live.items() if mark is not None)
    assert of_lua >= 0.9 * sum(counted.values()), (live, counted)


def functions(holder: dict) -> list[str]:
    return [
        f"{frame['function']}:{frame['line']}"
        for frame in holder["stack"]
        if (frame["file"] or "").endswith(".lua")
    ]


def shown_at_end(oomrec, tmp_path, name: str, text: str, *options: str, interpreter: str) -> dict:
    """What `show` says of the program's memory when it exited."""
    written(tmp_path / name, text)
    command = [interpreter, *(["-joff"] if interpreter == "luajit" else []), name]
    run = oomrec("run", *options, "--dump-at-exit", "--", *command, exits=0)
    return oomrec.json("show", "--at", "end", run.only_bundle())


CALLS = """local kept = {}
local function innermost(count)
  for i = 1, count do
    kept[i] = string.rep("x", 100000) .. i
  end
end
local function in_coroutine()
  innermost(400)
  return 0
end
local function main()
  local resumed, message = coroutine.resume(coroutine.create(in_coroutine))
  return resumed and message
end
main()
os.exit(0)
"""


@pytest.mark.parametrize("interpreter", INTERPRETERS[:2])
def test_callers_are_there_across_a_coroutine(oomrec, tmp_path, interpreter):
    (tmp_path / "calls.lua").write_text(CALLS)
    run = oomrec("run", "--dump-at-exit", "--", interpreter, "calls.lua", exits=0)
    shown = oomrec.json("show", "--at", "end", run.only_bundle())
    assert functions(shown["holders"][0]) == [
        "function <calls.lua:2>:4",
        "function <calls.lua:7>:8",
        "function <calls.lua:11>:12",
        "main chunk:15",
    ]
    native = [frame["function"] for frame in shown["holders"][0]["stack"]]
    assert native.index("lua_resume") < native.index("function <calls.lua:11>"), native
    assert native.index("main chunk") < native.index("lua_pcallk"), native
    text = oomrec("show", "--at", "end", run.only_bundle()).stdout
    assert 'kept[i] = string.rep("x", 100000) .. i' in text, "the line of the file"


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_the_line_in_a_long_function(oomrec, tmp_path, interpreter):
    """Lines are stored as differences, from a base every 128 instructions or after a gap."""
    steps = "  x = x + 1\n" * 400
    gap = "\n" * 300
    keep = "  for i = 1, 300 do kept[#kept + 1] = string.rep('x', 100000) .. #kept end\n"
    text = f"local kept, x = {{}}, 0\nlocal function long()\n{steps}{keep}{steps}{gap}{keep}end\nlong()\nos.exit(0)\n"
    expected = [f"function <long.lua:2>:{n}" for n in (403, 1104)]
    shown = shown_at_end(oomrec, tmp_path, "long.lua", text, interpreter=interpreter)
    found = Counter()
    for holder in shown["holders"]:
        found.update(dict.fromkeys(functions(holder)[:1], holder["bytes"]))
    assert {line for line, _ in found.most_common(2)} == set(expected), found


TABLES = """local kept = {}
local function name(i) return i end
local function make()
  local made = {}
  return made
end
for i = 1, 300000 do
  local first = name(i)
  local row = {}
  kept[i] = row
  kept[-i] = make()
end
os.exit(0)
"""


@pytest.mark.parametrize("interpreter", INTERPRETERS[:2])
def test_a_table_after_a_call(oomrec, tmp_path, interpreter):
    """From 5.4 on Lua does not say where it is when it makes one: the call's line would have it."""
    exact = "--mode", "exact"
    shown = shown_at_end(oomrec, tmp_path, "tables.lua", TABLES, *exact, interpreter=interpreter)
    blocks: Counter = Counter()
    for holder in shown["holders"]:
        blocks.update(dict.fromkeys(functions(holder)[:1], holder["count"]))
    assert blocks["main chunk:9"] >= 300_000 and blocks["function <tables.lua:3>:4"] >= 300_000
    assert blocks["main chunk:8"] + blocks["function <tables.lua:3>:3"] < 100, blocks


@pytest.mark.needs_program("lua5.4")
def test_code_without_lines_and_code_of_a_string(oomrec, tmp_path):
    text = (
        "local code = string.dump(load([[local kept = {}\n"
        "for i = 1, 300 do kept[i] = string.rep('s', 100000) .. i end return kept]]), true)\n"
        "A = load(code)()\n"
        "B = load([[local kept = {}\nfor i = 1, 200 do\n"
        "kept[i] = string.rep('t', 100000) .. i end return kept]])()\nos.exit(0)\n"
    )
    shown = shown_at_end(oomrec, tmp_path, "stripped.lua", text, interpreter="lua5.4")
    innermost = [
        next(frame for frame in holder["stack"] if frame["function"] == "main chunk")
        for holder in shown["holders"][:2]
    ]
    assert [(frame["file"], frame["line"]) for frame in innermost] == [
        ("?", None),
        ('[string "local kept = {}..."]', 3),
    ]


@pytest.mark.needs_program("lua5.4")
def test_a_refusal_and_its_line(oomrec, tmp_path):
    (tmp_path / "grows.lua").write_text(
        "local kept = {}\nlocal function grow()\n  for i = 1, 1e9 do\n"
        "    kept[i] = string.rep('x', 1 << 20) .. i\n  end\nend\n"
        "print(pcall(grow))\n"
    )
    run = oomrec("run", "--limit", "80M", "--", "lua5.4", "grows.lua", exits=0)
    assert run.stdout == "false\tnot enough memory\n"
    assert "at grows.lua:4 function <grows.lua:2> and was refused" in run.stderr
    shown = oomrec.json("show", run.only_bundle())
    assert functions({"stack": shown["request"]["stack"]})[0] == "function <grows.lua:2>:4"


@pytest.mark.needs_cgroup_write
@pytest.mark.needs_program("lua5.4")
def test_the_line_after_a_kill(oomrec, tmp_path, cgroup):
    (tmp_path / "grows.lua").write_text(
        "local kept = {}\nlocal function rows(count)\n  for i = 1, count do\n"
        "    kept[#kept + 1] = {id = i, name = 'row ' .. i}\n  end\nend\nrows(1e9)\n"
    )
    group = cgroup("100M")
    run = oomrec("run", "--", "lua5.4", "grows.lua", preexec_fn=group.enter)
    assert run.exit_code == 137
    (killed,) = run.bundles_for("killed")
    holders = oomrec.json("show", killed)["holders"]
    lines = [functions(holder)[:1] for holder in holders]
    of_line = sum(
        holder["bytes"]
        for holder, line in zip(holders, lines)
        if line == ["function <grows.lua:2>:4"]
    )
    assert of_line > 0.8 * (100 << 20), run.stderr
    assert re.search(r"largest holder: [^,]*, grows.lua:4 function <grows.lua:2>", run.stderr)


# Two threads, each with states of its own, one of which has an allocator of the program's.
HOST = r"""
#include <pthread.h>
#include <stdlib.h>
typedef struct lua_State lua_State;
lua_State *luaL_newstate(void), *lua_newthread(lua_State*);
lua_State* lua_newstate(void* (*)(void*, void*, size_t, size_t), void*);
static void* allocate(void* data, void* block, size_t old, size_t size) {
  (void)data, (void)old;
  if (size == 0) { free(block); return NULL; }
  return realloc(block, size);
}
static void* run(void* file) {
  for (int i = 0; i < 20; ++i) {  /* states that are gone: their addresses are used again */
    lua_State* brief = luaL_newstate();
    luaL_openlibs(brief);
    luaL_loadstring(brief, "local t = {} for i = 1, 2000 do t[i] = {i} end");
    lua_pcallk(brief, 0, 0, 0, 0, NULL);
    lua_close(brief);
  }
  lua_State* state = file ? luaL_newstate() : lua_newstate(allocate, NULL);
  luaL_openlibs(state);
  lua_State* thread = lua_newthread(state);
  luaL_loadfilex(thread, file ? "first.lua" : "second.lua", NULL);
  int results = 0;
  if (lua_resume(thread, NULL, 0, &results) != 1) abort();  /* LUA_YIELD */
  return NULL;
}
int main(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, run, i ? "" : NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  _Exit(0);
}
"""


@pytest.mark.needs_file("/usr/lib/*/liblua5.4.so.0")
def test_states_of_threads(oomrec, tmp_path):
    host = built(tmp_path, "host", HOST, "-l:liblua5.4.so.0")
    for name, size in (("first", 50_000), ("second", 30_000)):
        (tmp_path / f"{name}.lua").write_text(
            f"local kept = {{}}\nfor i = 1, 500 do\n  kept[i] = string.rep('x', {size}) .. i\nend\n"
            "collectgarbage()\ncoroutine.yield()\n"
        )
    run = oomrec("run", "--mode", "exact", "--dump-at-exit", "--", host, exits=0)
    shown = oomrec.json("show", "--at", "end", run.only_bundle())
    live: Counter = Counter()
    for holder in shown["holders"]:
        for frame in holder["stack"]:
            if (frame["file"] or "").endswith(".lua"):
                live[frame["file"]] += holder["bytes"]
                break
    assert abs(live["first.lua"] - 25_000_000) < 1_000_000, live
    assert abs(live["second.lua"] - 15_000_000) < 1_000_000, live


FORKS = r"""
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
typedef struct lua_State lua_State;
lua_State* luaL_newstate(void);
static int to_child(lua_State* state) {
  (void)state;
  const pid_t child = fork();
  if (child == 0) return 0;
  waitpid(child, NULL, 0);
  _Exit(0);
}
int main(void) {
  lua_State* state = luaL_newstate();
  luaL_openlibs(state);
  lua_pushcclosure(state, to_child, 0);
  lua_setglobal(state, "to_child");
  luaL_loadfilex(state, "forks.lua", NULL);
  lua_pcallk(state, 0, 0, 0, 0, NULL);
}
"""


@pytest.mark.needs_file("/usr/lib/*/liblua5.4.so.0")
def test_a_child_that_goes_on_with_its_parents_state(oomrec, tmp_path):
    """Its session has other ids for the functions that the parent's stacks have."""
    text = (
        "local kept = {}\nlocal function fill(count)\n  for i = 1, count do\n"
        "    kept[#kept + 1] = string.rep('x', 100000) .. #kept\n  end\nend\n"
        "for i = 1, 300 do load('K = string.rep(\\'y\\', 3000) .. ' .. i)() end\n"
        "fill(5) to_child()\nfill(400)\nos.exit(0)\n"
    )
    written(tmp_path / "forks.lua", text)
    host = built(tmp_path, "forks", FORKS, "-l:liblua5.4.so.0")
    run = oomrec("run", "--mode", "exact", "--dump-at-exit", "--", host, exits=0)
    holders = oomrec.json("show", "--at", "end", run.only_bundle())["holders"]
    assert functions(holders[0]) == ["function <forks.lua:2>:4", "main chunk:9"], holders[0]
