// The rows of functions: what the rest of oomrec derives from their traits.
#include "common/session/functions.h"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

using namespace oomrec;

TEST_CASE("a function is found by its name, and has it only once") {
  std::set<std::string_view> names;
  for (const Function& function : kFunctions) {
    if (function.name.empty()) continue;
    CHECK(names.insert(function.name).second);
    REQUIRE(api_named(function.name));
    CHECK(name_of(*api_named(function.name)) == function.name);
  }
  CHECK(names.size() > 150);
  CHECK_FALSE(api_named(""));
  CHECK_FALSE(api_named("cuMemAlloc_v2"));
}

TEST_CASE("a number of no function changes nothing, and cannot fail") {
  for (const Api api :
       {Api::end_of_host, Api::before_hip, Api::end_of_hip, static_cast<Api>(65535)}) {
    CHECK(name_of(api) == "unknown");
    CHECK(function_of(api).traits == 0);
    CHECK(space_of(api) == Space::heap);
  }
}

TEST_CASE("what only releases or queries cannot fail for lack of memory") {
  for (const Function& function : kFunctions) {
    const auto names = [&](std::string_view part) {
      return function.name.find(part) != function.name.npos;
    };
    if (!function.name.starts_with("cu") && !function.name.starts_with("hip")) continue;
    const bool may_fail = function.has(kFails);
    CHECK_MESSAGE(function.has(kInjectable) == may_fail, function.name);
    if (names("Free") || names("Destroy") || names("Release") || names("Unmap"))
      CHECK_MESSAGE(!may_fail, function.name);
    if (names("MemAlloc") || names("Create") || names("Malloc"))
      CHECK_MESSAGE(may_fail, function.name);
  }
  for (const Api api : {Api::free, Api::operator_delete, Api::munmap, Api::shmdt, Api::none})
    CHECK_FALSE(function_of(api).has(kFails | kInjectable));
  for (const Api api : {Api::malloc, Api::mmap, Api::mlock, Api::dlopen, Api::posix_spawn})
    CHECK(function_of(api).has(kFails));
}

TEST_CASE("the functions that allocate or free, by all their names") {
  std::set<std::string_view> heap, all;
  for (const Function& function : kMemoryFunctions) {
    all.insert(function.name);
    if (is_heap_function(function.name)) heap.insert(function.name);
  }
  CHECK(heap == std::set<std::string_view>{"malloc",
                                           "calloc",
                                           "realloc",
                                           "reallocarray",
                                           "free",
                                           "cfree",
                                           "memalign",
                                           "aligned_alloc",
                                           "posix_memalign",
                                           "valloc",
                                           "pvalloc",
                                           "free_sized",
                                           "free_aligned_sized",
                                           "dallocx",
                                           "sdallocx",
                                           "mallocx",
                                           "__libc_malloc",
                                           "__libc_calloc",
                                           "__libc_realloc",
                                           "__libc_free",
                                           "__libc_memalign",
                                           "__libc_valloc",
                                           "__libc_pvalloc"});
  CHECK(all.contains("mmap64"));
  CHECK(all.contains("shmdt"));
  CHECK_FALSE(all.contains("operator_new"));  // its exported names are others
  CHECK_FALSE(is_heap_function("mmap"));
}
