// Names of native functions: demangled, shortened, and told from those of standard libraries.
#include "tools/recording/symbolize/function_name.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "tools/base/text.h"

using namespace oomrec::tools;
using recording::demangled;
using recording::shortened_name;

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
