// Short C++ names, and which functions are the standard library's.
#include "common/names/names.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "common/names/library_functions.h"

using namespace oomrec;

TEST_CASE("a C++ symbol is demangled without its parameters, or kept") {
  constexpr std::pair<const char*, const char*> kRows[] = {
      {"main", "main"},
      {"_Z10load_tablem", "load_table"},
      {"_ZN5train5Model4growEm", "train::Model::grow"},
      {"_ZNK5train5Model4sizeEv", "train::Model::size"},
      {"_ZN5train5ModelC2ERKS0_", "train::Model::Model"},
      {"_ZN5train5ModelD1Ev", "train::Model::~Model"},
      {"_ZN12_GLOBAL__N_14growEv", "(anonymous namespace)::grow"},
      {"_ZN5train5StackIiLi4EE4pushERKi", "train::Stack::push"},
      {"_ZN5train5StackISt6vectorIiSaIiEELb1EE4pushEv", "train::Stack::push"},
      {"_Z4fillISt6vectorIdSaIdEEEvRT_m", "fill"},
      {"_ZSt4moveIRiEONSt16remove_referenceIT_E4typeEOS2_", "std::move"},
      {"_ZNSt6vectorIdSaIdEE17_M_default_appendEm", "std::vector::_M_default_append"},
      {"_ZN5train5ModelclEv", "train::Model::operator()"},
      {"_ZN4load5tableB5cxx11Ev", "load::table"},
      {"_ZZ4mainENKUlvE_clEv", "_ZZ4mainENKUlvE_clEv"},
      {"_ZN3fooS1_E", "_ZN3fooS1_E"},
      {"_ZN99foo", "_ZN99foo"},
      {"_ZN99999999999999999999999foo", "_ZN99999999999999999999999foo"},
      {"_ZN3fooI", "_ZN3fooI"},
      {"_ZNE", "_ZNE"},
      {"_Z", "_Z"},
  };
  char buffer[128];
  for (const auto& row : kRows) {
    const char* const symbol = row.first;
    CAPTURE(symbol);
    CHECK(std::string{names::short_cxx_name(symbol, buffer)} == row.second);
    // Cut anywhere, it is at most odd.
    for (std::size_t bytes = 0; bytes < std::string_view{symbol}.size(); ++bytes)
      CHECK(names::short_cxx_name(std::string_view{symbol}.substr(0, bytes), buffer).size() <= 127);
  }
}

TEST_CASE("functions of the standard library, in whatever module they are") {
  for (const char* name :
       {"std::vector<int>::push_back(int&&)", "__gnu_cxx::new_allocator<int>::allocate",
        "operator new(unsigned long)", "operator new[](unsigned long)", "_Znwm", "_ZNKSs4sizeEv",
        "_ZNSt6vectorIdSaIdEE17_M_default_appendEm", "_ZSt4moveIRiEONSt16remove_referenceIT_E",
        "_ZZSt39uninitialized_construct_using_allocatorIiENKUlvE_clEv",
        "alloc::raw_vec::finish_grow", "<alloc::raw_vec::RawVec<&str>>::grow_one",
        "<std::collections::hash::map::HashMap<u8, u8>>::insert", "__rustc::__rust_alloc",
        "<[u8]>::repeat", "<str>::to_uppercase"}) {
    CAPTURE(name);
    CHECK(names::is_library_function(name));
  }
  for (const char* name :
       {"", "main", "train::Model::grow", "stdx::vector::push_back", "my::std::vector", "standard",
        "_ZN5train5Model4growEm", "core::Engine::run", "allocate", "alloc_rows", "operator+",
        "<train::Row as core::clone::Clone>::clone", "<[u8] as train::Row>::parse",
        "numpy.random._generator.Generator.normal"}) {
    CAPTURE(name);
    CHECK_FALSE(names::is_library_function(name));
  }
}
