"""Rules for the sources that neither compiler nor linker checks."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("common", "include", "recorder", "shim", "tools")

COMMENT_OR_TEXT = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\])+'", re.S
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
SCOPE = re.compile(r"\bnamespace\s+([\w:]+)\s*$")
UNNAMED = re.compile(r"\bnamespace\s*$")
EXTERN_C = re.compile(r"\bextern\s*$")
# "template <class T>" declares no T, and a specialization is not a new type.
TEMPLATE = re.compile(r"\btemplate\s*<[^;{}]*?>(?=\s*(?:\[\[|\w))")
TYPE = re.compile(
    r"\b(?:struct|class|union|enum(?:\s+(?:class|struct))?)\s+"
    r"(?:\[\[[^\]]*\]\]\s*|alignas\s*\([^)]*\)\s*)*([A-Za-z_]\w*)\s*(?:final\s*)?(?::[^:(][^(]*|:)?$"
)


def types_in(source: str) -> list[str]:
    """Qualified names of the types defined where other files see them."""
    text = DIRECTIVE.sub("", COMMENT_OR_TEXT.sub(" ", source))
    scopes: list[str | None] = []  # None: a function body, or an anonymous namespace
    found = []
    start = 0
    for match in re.finditer(r"[{};]", text):
        before, start = text[start : match.start()], match.end()
        if match[0] == "}":
            del scopes[-1:]
        elif match[0] == "{":
            inner = None
            declared = TEMPLATE.sub(" ", before)
            if named := SCOPE.search(declared):
                inner = named[1]
            elif EXTERN_C.search(declared):
                inner = ""
            elif not UNNAMED.search(declared) and (defined := TYPE.search(declared)):
                inner = defined[1]
                if None not in scopes:
                    found.append("::".join([scope for scope in scopes if scope] + [inner]))
            scopes.append(inner)
    return found


def twins(files: dict[str, str]) -> dict[str, list[str]]:
    """Names with more than one definition, and the files that have them."""
    places = defaultdict(list)
    for path, source in files.items():
        for name in types_in(source):
            places[name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_no_two_types_share_a_name():
    """Two types of one name break the one-definition rule: each file compiles, the linker is silent,
    and the constructor or destructor of one is used for both."""
    files = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".h", ".cpp") and path.parent.name != "aarch64"  # x86_64/ has the same
    }

    known = [name for source in files.values() for name in types_in(source)]
    assert len(known) > 300 and "oomrec::session::Header" in known
    assert twins(files) == {}


def test_a_duplicate_type_is_found_in_any_file():
    one = "namespace oomrec::tools {\nstruct Row {\n  int cells[2] = {1, 2};\n};\n}"
    other = (
        "namespace oomrec { namespace tools {\n// struct Other {\nclass Row final : Base {};\n} }"
    )

    assert twins({"a.h": one, "b.h": other}) == {"oomrec::tools::Row": ["a.h", "b.h"]}
    apart = (
        "namespace oomrec::tools { namespace { struct Row {}; }\n"
        "struct Table { struct Row {}; };\nvoid f() { struct Row {}; }\n"
        "template <class Row> Row g(Row row) { return row; }\nstruct Row;\n"
        "Row make(int) { return {}; } }\nnamespace oomrec::report { enum class Row : char { a }; }"
    )
    assert twins({"a.h": one, "c.h": apart}) == {}
    assert "oomrec::report::Row" in types_in(apart)


def test_json_passes_one_parser():
    """parse_json() bounds what a foreign text costs (tools/base/json.h). nlohmann's own do not."""
    beside = re.compile(r"\bnlohmann\b|\bsax_parse\b|\bordered_json\b|\bJson::parse\b")
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".h", ".cpp")
        and beside.search(COMMENT_OR_TEXT.sub(" ", path.read_text(encoding="utf-8")))
        or path.suffix in (".h", ".cpp")
        and "nlohmann/" in path.read_text(encoding="utf-8")
    }
    assert found == {"tools/base/json_text.cpp"}
    door = (ROOT / "tools/base/json_text.cpp").read_text(encoding="utf-8")
    assert len(re.findall(r"\bsax_parse\(", door)) == 1
    assert not re.search(r"ordered_json::(parse|accept)\(|>> *\w*json", door)


# Of C and POSIX, as libstdc++'s headers include them.
OF_THE_SYSTEM = """assert complex ctype errno fenv float inttypes iso646 libintl limits locale math pthread sched semaphore setjmp
    signal stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string syscall time uchar unistd wchar wctype""".split()


def test_no_header_hides_one_of_the_system():
    """Meson searches a file's own folder first, also for what libstdc++ includes."""
    ours = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.h")]
    assert len(ours) > 300
    assert [path for path in ours if path.stem in OF_THE_SYSTEM] == []
