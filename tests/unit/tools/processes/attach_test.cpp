#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "tools/processes/attach/machine_code.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/tracee.h"

using namespace oomrec::tools::processes;

namespace {

user_regs_struct in_call(long number, long result) {
  user_regs_struct registers{};
  registers.orig_rax = static_cast<unsigned long long>(number);
  registers.rax = static_cast<unsigned long long>(result);
  registers.rip = 0x1002;
  return registers;
}

}  // namespace

TEST_CASE("an interrupted call is repeated by its own instruction") {
  for (const long restart : {-512L, -513L, -514L}) {
    const user_regs_struct after = with_restarted_call(in_call(SYS_read, restart));
    CHECK(after.rax == SYS_read);
    CHECK(after.rip == 0x1000);
  }
}

TEST_CASE("a call with a time is resumed, not repeated") {
  const user_regs_struct after = with_restarted_call(in_call(SYS_clock_nanosleep, -516));
  CHECK(after.rax == SYS_restart_syscall);
  CHECK(after.rip == 0x1000);
}

TEST_CASE("a call that has returned stays so") {
  for (const long result : {0L, 17L, -static_cast<long>(EINTR)}) {
    const user_regs_struct after = with_restarted_call(in_call(SYS_read, result));
    CHECK(after.rax == static_cast<unsigned long long>(result));
    CHECK(after.rip == 0x1002);
  }
}

TEST_CASE("a stop tells whether the thread was asleep in a call") {
  for (const long restart : {-512L, -514L, -516L, -static_cast<long>(EINTR)})
    CHECK(was_asleep(in_call(SYS_wait4, restart)));
  for (const long result : {0L, 17L, -static_cast<long>(ENOMEM)})
    CHECK_FALSE(was_asleep(in_call(SYS_mmap, result)));
  CHECK_FALSE(was_asleep(in_call(-1, -512)));
}

TEST_CASE("a stop does not end epoll_wait with EINTR") {
  const user_regs_struct stopped = in_call(SYS_epoll_wait, -EINTR);
  CHECK(static_cast<long>(with_call_to_restart(stopped).rax) == -514);
  CHECK(with_restarted_call(with_call_to_restart(stopped)).rip == 0x1000);
  SUBCASE("but a call that a handler has interrupted does end so") {
    CHECK(static_cast<long>(with_call_to_restart(in_call(SYS_read, -EINTR)).rax) == -EINTR);
  }
  SUBCASE("nor is one repeated that has a result") {
    CHECK(with_call_to_restart(in_call(SYS_epoll_wait, 3)).rax == 3);
  }
}

TEST_CASE("the code starts with what tells that it is there") {
  const MachineCode code = code_of({}, 0x12340000, {}, 0);
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
