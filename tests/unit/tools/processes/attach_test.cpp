#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "tools/processes/attach/machine_code.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"

using namespace oomrec::tools::processes;

TEST_CASE("the code starts with what tells that it is there") {
  const MachineCode code = code_of({}, 0x12340000, {}, 0, 0);
  CodeHeader header{};
  std::memcpy(&header, code.bytes.data(), sizeof header);
  CHECK(header.magic == CodeHeader::kMagic);
  CHECK(header.scratch == 0x12340000);
  CHECK(code.last_wait > sizeof header);
  CHECK(code.last_wait_end > code.last_wait);
  CHECK(code.last_wait_end < code.bytes.size());
  CHECK(code.bytes.size() < 1024);  // to fit behind the code of a module
}

TEST_CASE("modules of a process are read from its memory") {
  const RemoteMemory own{getpid()};
  std::optional<std::uint64_t> found;
  for (const RemoteModule& module : remote_modules(own)) {
    if (!module.file_name().starts_with("libc.so")) continue;
    found = module.address_of("getppid");
    const RemoteSymbol* const symbol = module.symbol_at(*found);
    REQUIRE(symbol != nullptr);
    CHECK(symbol->name.ends_with("getppid"));
    CHECK(module.address_of("no_such_function") == 0);
    REQUIRE(!module.gaps().empty());
    CHECK(module.gaps()[0].bytes < 4096);
  }
  CHECK(found == reinterpret_cast<std::uint64_t>(&getppid));
}

TEST_CASE("a module with a hash table of the older kind only is read, too") {
  void* const library = dlopen(LIBRARY_OLD_HASH, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  std::optional<std::uint64_t> found;
  for (const RemoteModule& module : remote_modules(RemoteMemory{getpid()})) {
    if (module.file_name() != "libold_hash.so") continue;
    found = module.address_of("old_hash_second");
    CHECK(module.address_of("getppid") == 0);
  }
  CHECK(found == reinterpret_cast<std::uint64_t>(dlsym(library, "old_hash_second")));
  dlclose(library);
}
