// Stacks as text, and names of functions.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tests/unit/tools/recording_image.h"
#include "tools/base/text.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/recording/symbolize/function_name.h"

using namespace oomrec::tools;
using namespace oomrec;
using oomrec::tests::RecordingImage;
using recording::demangled;
using recording::shortened_name;

// --- Stacks as text, and the selection of frames

namespace {

std::vector<recording::StackRow> rows(
    std::initializer_list<std::pair<int, recording::Interest>> runs) {
  std::vector<recording::StackRow> result;
  for (const auto& [count, interest] : runs) {
    for (int i = 0; i < count; ++i) result.push_back({result.size(), result.size() + 1, interest});
  }
  return result;
}

std::size_t lines_of(const std::vector<bool>& shown) {
  std::size_t lines = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) lines += shown[i] || i == 0 || shown[i - 1];
  return lines;
}

struct Printed {
  RecordingImage image;
  std::string text(std::uint32_t node, bool full = false) {
    const recording::Recording recording{image.path()};
    recording::Locations locations{recording, {}};
    return recording::stack_text(locations.of_stack(node), locations,
                                 {Terminal{STDIN_FILENO}, 0, full});
  }
};

}  // namespace

TEST_CASE("a stack that fits is shown completely, except for machinery") {
  const auto shown = recording::select_rows(
      rows({{5, recording::Interest::library_function}, {3, recording::Interest::machinery}}), 14,
      4);
  CHECK(std::count(shown.begin(), shown.end(), true) == 5);
  CHECK_FALSE(shown[7]);
}

TEST_CASE("own lines take precedence over own functions, and these over libraries") {
  const auto stack = rows({{40, recording::Interest::library_function},
                           {2, recording::Interest::own_line},
                           {40, recording::Interest::machinery},
                           {9, recording::Interest::own_function},
                           {3, recording::Interest::own_line},
                           {9, recording::Interest::library_line}});
  const auto shown = recording::select_rows(stack, 14, 4);
  CHECK(lines_of(shown) <= 14);
  CHECK(shown[0]);
  for (const std::size_t own : {40u, 41u, 91u, 92u, 93u}) CHECK(shown[own]);
  CHECK(std::count(shown.begin() + 82, shown.begin() + 91, true) == 1);
  CHECK(std::count(shown.begin() + 94, shown.end(), true) == 0);
}

TEST_CASE("of many own lines, the innermost and the two outermost are shown") {
  const auto shown = recording::select_rows(
      rows({{9, recording::Interest::library_function}, {30, recording::Interest::own_line}}), 14,
      4);
  CHECK(lines_of(shown) <= 14);
  for (const std::size_t own : {9u, 10u, 11u, 12u, 13u, 37u, 38u}) CHECK(shown[own]);
  CHECK_FALSE(shown[36]);
}

TEST_CASE("library lines take precedence over library functions") {
  const auto shown = recording::select_rows(
      rows({{50, recording::Interest::library_function}, {5, recording::Interest::library_line}}),
      14, 4);
  for (const std::size_t line : {50u, 51u, 52u, 53u, 54u}) CHECK(shown[line]);
}

TEST_CASE("any selection fits in its lines, and no gap replaces a single row") {
  std::uint32_t random = 7;
  int rounds = 0;
  for (; rounds < 500; ++rounds) {
    std::vector<recording::LocationId> stack(random % 200);
    std::vector<recording::Interest> interest(stack.size());
    for (std::size_t i = 0; i < stack.size(); ++i) {
      random = random * 1664525 + 1013904223;
      interest[i] = static_cast<recording::Interest>(random >> 16 & 3 ? (random >> 20) % 5 : 0);
      stack[i] = (random >> 24) % 3;
    }
    const auto lines = recording::fold_repetitions(stack, interest);
    std::size_t covered = 0;
    for (const recording::StackRow& row : lines) {
      REQUIRE(row.first == covered);
      covered = row.last;
    }
    REQUIRE(covered == stack.size());
    const auto shown = recording::select_rows(lines, 14, 4);
    REQUIRE(lines_of(shown) <= 14);
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const bool gap_of_one =
          !shown[i] && (i == 0 || shown[i - 1]) && (i + 1 == shown.size() || shown[i + 1]);
      REQUIRE_FALSE(gap_of_one);
    }
  }
  CHECK(rounds == 500);
}

TEST_CASE("recursion is shown once, with its count") {
  Printed printed;
  RecordingImage& image = printed.image;
  const auto python = image.module("/usr/bin/python3.11", 0x1000);
  const auto call = session::native_frame(python, 16);
  const auto main = image.python("/p/walk.py", "main", 30);
  const auto walk = image.python("/p/walk.py", "walk", 3);
  const auto visit = image.python("/p/walk.py", "visit", 7);
  const auto leaf = image.python("/p/walk.py", "leaf", 9);

  SUBCASE("one function, with interpreter frames between its calls") {
    const auto node =
        image.stack({call, call, main, walk, call, walk, call, call, walk, leaf, visit});
    CHECK(printed.text(node) ==
          "/p/walk.py:7 visit\n/p/walk.py:9 leaf\n/p/walk.py:3 walk  × 3\n/p/walk.py:30 main\n"
          "… 2 frames of the interpreter\n");
    const std::string full = printed.text(node, true);
    CHECK(std::count(full.begin(), full.end(), '\n') == 11);
  }
  SUBCASE("several functions in turn") {
    CHECK(printed.text(image.stack({main, walk, call, visit, walk, visit, call, walk, visit})) ==
          "/p/walk.py:7 visit\n/p/walk.py:3 walk\n… these 2 frames × 3\n/p/walk.py:30 main\n");
  }
  SUBCASE("folding two rounds of two would save no line") {
    CHECK(printed.text(image.stack({main, walk, visit, walk, visit})) ==
          "/p/walk.py:7 visit\n/p/walk.py:3 walk\n/p/walk.py:7 visit\n/p/walk.py:3 walk\n"
          "/p/walk.py:30 main\n");
  }
}

TEST_CASE("import system, interpreter and startup code are counted; packages have short paths") {
  Printed printed;
  RecordingImage& image = printed.image;
  const auto module = [&](const char* path) { return image.frames_of(path); };
  const auto python = module("/usr/bin/python3.11");
  const auto pickle = module("/opt/python/lib/python3.11/lib-dynload/_pickle.cpython-311.so");
  const auto umath = module("/v/lib/python3.11/site-packages/numpy/_umath.so");
  const auto load = image.python("<frozen importlib._bootstrap>", "_load_unlocked", 690);
  const auto own = image.python("/home/me/train.py", "main", 9);
  const auto numpy =
      image.python("/v/lib/python3.11/site-packages/numpy/__init__.py", "<module>", 4);
  const std::uint32_t node =
      image.stack({python(1), python(2), own, python(3), load, load, pickle(1), numpy, load,
                   python(4), umath(1), umath(2), umath(3), umath(4)});

  CHECK(printed.text(node) ==
        "numpy/__init__.py:4 <module>\n"
        "    in native code: _umath.so (4 functions)\n"
        "… 4 frames of the interpreter\n"
        "/home/me/train.py:9 main\n"
        "… 2 frames of the interpreter\n");
  const std::string full = printed.text(node, true);
  CHECK(std::count(full.begin(), full.end(), '\n') == 14);
}

TEST_CASE("native functions inside of the innermost line of Python are one line below it") {
  Printed printed;
  RecordingImage& image = printed.image;
  const auto module = [&](const char* path) { return image.frames_of(path); };
  const auto python = module("/usr/bin/python3.11");
  const auto reader = module("/p/reader.so");
  const auto codec = module("/p/codec.so");
  const auto own = image.python("/home/me/train.py", "main", 9);
  const auto inner = image.python("/home/me/train.py", "load", 5);

  SUBCASE("from the outermost to the innermost, without the interpreter's") {
    CHECK(printed.text(image.stack({own, inner, python(1), reader(1), reader(2), codec(3)})) ==
          "/home/me/train.py:5 load\n    in native code: reader.so … codec.so (3 functions)\n"
          "/home/me/train.py:9 main\n");
  }
  SUBCASE("a single one") {
    CHECK(printed.text(image.stack({own, codec(3)})) ==
          "/home/me/train.py:9 main\n    in native code: codec.so\n");
  }
  SUBCASE("of a long name of a module, its beginning stays, not its suffix") {
    const auto engine = module("/p/engine_pybind_state.cpython-311-x86_64-linux-gnu.so");
    CHECK(printed.text(image.stack({own, engine(1), engine(2)})) ==
          "/home/me/train.py:9 main\n    in native code: engine_pybind_state.so (2 functions)\n");
    const auto longest = module("/p/libthe_runtime_of_all_providers_together.so.1.32.0");
    CHECK(printed.text(image.stack({own, longest(1)})) ==
          "/home/me/train.py:9 main\n    in native code: libthe_runtime_of_all_providers…\n");
  }
  SUBCASE("the interpreter's functions without a name say nothing") {
    CHECK(printed.text(image.stack({own, python(1), python(2)})) == "/home/me/train.py:9 main\n");
  }
  SUBCASE("with --full, each is a line of its own") {
    CHECK(printed.text(image.stack({own, reader(1), codec(3)}), true) ==
          "codec.so+0x3\nreader.so+0x1\n/home/me/train.py:9 main\n");
  }
  SUBCASE("a stack without Python is shown as it is") {
    CHECK(printed.text(image.stack({reader(1), codec(3)})) == "codec.so+0x3\nreader.so+0x1\n");
  }
  SUBCASE("native code that calls Python in turn is a repetition, of which nothing is taken away") {
    const std::string text = printed.text(
        image.stack({own, inner, codec(1), inner, codec(1), inner, codec(1), inner, codec(1)}));
    CHECK(text ==
          "codec.so+0x1\n/home/me/train.py:5 load\n… these 2 frames × 4\n"
          "/home/me/train.py:9 main\n");
  }
}

// --- Names of native functions: demangled, shortened, and told from those of standard libraries

TEST_CASE("names of all languages are demangled, others are unchanged") {
  CHECK(demangled("_ZN6shapes5outerEv") == "shapes::outer()");
  CHECK(demangled("_ZN4core3ptr13drop_in_place17h39881ba72e98ccdeE") == "core::ptr::drop_in_place");
  CHECK(demangled("_RNvMCs4Jz2Mtfmu5I_1vINtB2_3RowmKj4_E4push") == "<v::Row<u32, 4>>::push");
  CHECK(demangled("__pyx_pw_5numpy_6random_10_generator_9Generator_31standard_normal") ==
        "numpy.random._generator.Generator.standard_normal");
  for (const char* name : {"malloc", "", "_ZN", "_RNv", "__pyx_fatalerror", "_ZN99foo"})
    CHECK(demangled(name) == name);
}

TEST_CASE("a long name loses arguments, never the function's own name") {
  constexpr const char* kInsert =
      "void std::vector<train::Row, std::allocator<train::Row> >::_M_realloc_insert<train::Row>("
      "__gnu_cxx::__normal_iterator<train::Row*, std::vector<train::Row, "
      "std::allocator<train::Row> > >, train::Row&&)";
  constexpr std::pair<const char*, const char*> kRows[] = {
      {"short(int)", "short(int)"},
      {kInsert, "std::vector<train::Row,…>::_M_realloc_insert<…>(…)"},
      // Without its type and parameters it fits.
      {"std::pair<int, int> train::Model::split_evenly(std::vector<int> const&) const",
       "train::Model::split_evenly(…)"},
      {"int train::load_the_table_of_the_model(unsigned long)",
       "train::load_the_table_of_the_model(unsigned long)"},
      {"decltype (auto) train::apply<std::map<int, std::vector<int> >, std::map<int, int> >()",
       "train::apply<std::map<int, std:…>, std::map<…> >()"},
      {"(anonymous namespace)::cache_of_the_model<std::map<int, int>, int>::insert_or_assign(int)",
       "…::cache_of_the_model<…>::insert_or_assign(…)"},
      {"train::operator<< <std::char_traits<char> >(std::basic_ostream<char>&, train::Row const&)",
       "train::operator<< <std::char_traits<char> >(…)"},
      {"std::map<int, std::vector<int> >::operator[](std::map<int, std::vector<int> >::key_type&&)",
       "std::map<int, std::vector<int> >::operator[](…)"},
      {"operator new(unsigned long, std::align_val_t, std::nothrow_t const&)", "operator new(…)"},
      {"<train::Row<u32, 4> as core::iter::traits::collect::Extend<train::Item>>::extend_one",
       "<train::Row<u32, 4> as core::iter::t…>::extend_one"},
      {"sklearn.ensemble._hist_gradient_boosting.splitting.Splitter.find_node_split",
       "….splitting.Splitter.find_node_split"},
  };
  for (const auto& row : kRows) {
    const char* const name = row.first;
    CAPTURE(name);
    CHECK(shortened_name(name, 50) == row.second);
    CHECK(shortened_name(name, 1000) == name);
    for (std::size_t columns = 4; columns < 90; ++columns)
      CHECK(width(shortened_name(name, columns)) <= columns);
  }
}

TEST_CASE("rows that differ in their method or their first argument differ when shortened") {
  const std::string row = "train::Row<std::__cxx11::basic_string<char, std::char_traits<char> > >";
  std::set<std::string> names;
  for (const char* method : {"push_back", "emplace_back<>", "_M_realloc_insert", "reserve"})
    for (const char* first : {"int", "train::Key"})
      names.insert(shortened_name("std::vector<std::pair<" + std::string{first} + ", " + row +
                                      " > >::" + method + "(" + row + " const&)",
                                  60));
  CHECK(names.size() == 8);
}

TEST_CASE("hostile names are shortened in bounded time") {
  for (const char* part :
       {"<", ">", "::", "(", "operator", "(anonymous namespace)", "a<", "\x80"}) {
    CAPTURE(part);
    std::string name;
    while (name.size() < (1 << 16)) name += part;
    CHECK(shortened_name(name, 60).size() <= name.size());
  }
}

TEST_CASE("functions of the standard library, with whatever type they return") {
  const auto is_library = [](const char* name) {
    recording::Location location;
    location.function = name;
    return recording::is_library_function(location);
  };
  for (const char* name :
       {"operator new(unsigned long)", "void std::vector<int>::push_back(int&&)",
        "train::Row& std::vector<train::Row>::emplace_back<>()",
        "std::__new_allocator<int>::allocate(unsigned long)",
        "void* __gnu_cxx::__pool<true>::allocate(unsigned long)",
        "std::map<int, train::Row>::operator[](int&&)", "<alloc::vec::Vec<u8>>::push",
        "<train::Pool as core::alloc::global::GlobalAlloc>::alloc", "heap.SmpAllocator.alloc",
        "mem.Allocator.allocBytesAligned__func_98", "posix.mmap"}) {
    CAPTURE(name);
    CHECK(is_library(name));
  }
  for (const char* name :
       {"main", "", "std::vector<int> train::rows(int)", "train::operator new(unsigned long)",
        "train::operator<<(std::ostream&, train::Row const&)", "train::Row::operator std::string()",
        "(anonymous namespace)::grow()", "<train::Row as core::clone::Clone>::clone",
        "grow.keepNode", "heap.push", "posix::mmap(train::File&)"}) {
    CAPTURE(name);
    CHECK_FALSE(is_library(name));
  }
}
