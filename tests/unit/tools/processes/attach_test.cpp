// Whether and how a process can be attached to.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "common/machine/platform.h"
#include "tools/processes/attach/machine_code.h"
#include "tools/processes/attach/permission.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/sandbox.h"

using namespace oomrec::tools::processes;
using namespace oomrec::tools;

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

namespace {

// A procfs with one process, and Yama's setting.
struct FakeProc {
  std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("oomrec-proc-" + std::to_string(getpid()));
  FakeProc(const std::string& scope, const std::string& users) {
    std::filesystem::create_directories(root / "sys/kernel/yama");
    std::filesystem::create_directories(root / "17");
    std::ofstream{root / "sys/kernel/yama/ptrace_scope"} << scope << "\n";
    std::ofstream{root / "17/status"} << "Name:\tx\nUid:\t" << users << "\n";
  }
  ~FakeProc() { std::filesystem::remove_all(root); }
};

std::string own() { return std::to_string(geteuid()); }

TraceRights of_user(const std::string& scope) {
  TraceRights rights;
  rights.scope = scope;
  return rights;
}

std::string text_of(const TraceRights& rights) {
  const Error error = not_permitted(17, EPERM, rights);
  return std::string{error.what()} + " / " + error.what_to_do();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const sock_filter kLoadNumber = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
const sock_filter kLoadArgument = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args));
const sock_filter kAllow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
const sock_filter kKill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
sock_filter jump_if(std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

}  // namespace

TEST_CASE("each setting of Yama has its sentence") {
  for (const std::string scope : {"1", "2", "3"}) {
    const FakeProc proc{scope, own() + "\t" + own() + "\t0\t0"};
    const TraceRights rights = trace_rights(17, proc.root.string());
    CHECK(rights.scope == scope);
    CHECK(rights.is_own);
    CHECK(rights.is_dumpable);
    CHECK_FALSE(rights.is_setuid);
    CHECK(contains(text_of(of_user(scope)), "kernel.yama.ptrace_scope is " + scope));
  }
  CHECK(contains(text_of(of_user("1")), "sudo sysctl kernel.yama.ptrace_scope=0"));
  CHECK(contains(text_of(of_user("2")), "sudo oomrec attach 17"));
  CHECK(contains(text_of(of_user("3")), "oomrec run"));  // nothing else helps
  CHECK_FALSE(contains(text_of(of_user("0")), "yama"));
  CHECK_FALSE(contains(text_of(of_user("")), "yama"));
}

TEST_CASE("without Yama the refusal has another reason") {
  const FakeProc proc{"0", "123456\t654321\t0\t0"};
  TraceRights rights = trace_rights(17, proc.root.string());
  CHECK_FALSE(rights.is_own);
  CHECK(rights.is_setuid);
  rights.is_root = false;
  CHECK(contains(text_of(rights), "belongs to another user"));
  rights.is_own = true;
  CHECK(contains(text_of(rights), "setuid"));
  rights.is_setuid = false;
  rights.is_dumpable = false;
  CHECK(contains(text_of(rights), "PR_SET_DUMPABLE"));
  rights.is_root = true;
  rights.has_capability = false;
  CHECK(contains(text_of(rights), "this root lacks CAP_SYS_PTRACE"));
  rights.has_capability = true;
  CHECK(contains(text_of(rights), "another user namespace"));
}

TEST_CASE("a filter is followed for one call") {
  const std::vector<sock_filter> kills_openat{kLoadNumber, jump_if(SYS_openat, 0, 1), kKill,
                                              kAllow};
  CHECK(may_punish(kills_openat, SYS_openat));
  CHECK_FALSE(may_punish(kills_openat, SYS_read));
}

TEST_CASE("an error is no harm, a signal or another process's ruling is") {
  for (const auto& [action, harms] :
       {std::pair<std::uint32_t, bool>{SECCOMP_RET_ERRNO | EPERM, false},
        {SECCOMP_RET_LOG, false},
        {SECCOMP_RET_TRAP, true},
        {SECCOMP_RET_TRACE, true},
        {SECCOMP_RET_USER_NOTIF, true},
        {SECCOMP_RET_KILL_THREAD, true}}) {
    const std::vector<sock_filter> filter{BPF_STMT(BPF_RET | BPF_K, action)};
    CHECK(may_punish(filter, SYS_read) == harms);
  }
}

TEST_CASE("a branch on an argument is taken both ways") {
  const std::vector<sock_filter> by_argument{kLoadArgument, jump_if(4, 0, 1), kKill, kAllow};
  CHECK(may_punish(by_argument, SYS_mprotect));
  SUBCASE("but not one on the architecture") {
    const std::vector<sock_filter> by_architecture{
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
        jump_if(oomrec::machine::kAuditArchitecture, 1, 0), kKill, kAllow};
    CHECK_FALSE(may_punish(by_architecture, SYS_mprotect));
  }
}

TEST_CASE("values go through registers and memory") {
  const std::vector<sock_filter> filter{kLoadNumber,
                                        BPF_STMT(BPF_ST, 3),
                                        BPF_STMT(BPF_LD | BPF_IMM, 0),
                                        BPF_STMT(BPF_LDX | BPF_MEM, 3),
                                        BPF_STMT(BPF_MISC | BPF_TXA, 0),
                                        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
                                        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1),
                                        jump_if(SYS_brk + 1, 1, 0),
                                        kAllow,
                                        kKill};
  CHECK(may_punish(filter, SYS_brk));
  CHECK_FALSE(may_punish(filter, SYS_mmap));
}

TEST_CASE("a filter that runs out of its end is not trusted") {
  CHECK(may_punish({}, SYS_read));
  const std::vector<sock_filter> endless{kLoadNumber};
  CHECK(may_punish(endless, SYS_read));
}
