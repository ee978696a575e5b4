#include "recorder/symbols/elf_symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <doctest/doctest.h>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace oomrec;
using symbols::ElfSymbols;

namespace {

const InHook kHook = OutsideHooks::in_hook();

std::uint64_t start_of_module_with(void* address) {
  Dl_info info;
  REQUIRE(dladdr(address, &info) != 0);
  return reinterpret_cast<std::uint64_t>(info.dli_fbase);
}

// libc's function, even if a sanitizer's runtime defines the same name.
void* in_libc(const char* name) {
  static void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  return dlsym(libc, name);
}

std::uint64_t address_in_libc(const char* name) {
  return reinterpret_cast<std::uint64_t>(in_libc(name));
}

std::string name_at(ElfSymbols& symbols, std::uint64_t pc) {
  char name[128] = "";
  std::uint64_t offset = 0;
  return symbols.name_at(kHook, pc, name, sizeof name, offset)
             ? name + ("+" + std::to_string(offset))
             : "";
}

}  // namespace

TEST_CASE("a module's exported names resolve to addresses and back") {
  const std::uint64_t libc = start_of_module_with(in_libc("qsort"));
  alignas(8) std::array<std::byte, 4096> window;
  std::span<std::byte> reads_through;
  SUBCASE("read in place") {}
  SUBCASE("read through a window") { reads_through = window; }

  ElfSymbols symbols(kHook, libc, reads_through);

  REQUIRE(symbols.valid());
  for (const char* name : {"malloc", "qsort", "getenv", "pthread_create", "environ"}) {
    CHECK(symbols.address_of(kHook, name) == address_in_libc(name));
  }
  for (const char* name : {"malloc", "qsort", "getenv"}) {
    CHECK(name_at(symbols, address_in_libc(name)) == name + std::string("+0"));
    CHECK(name_at(symbols, address_in_libc(name) + 3) == name + std::string("+3"));
  }
  CHECK(symbols.address_of(kHook, "no_such_function") == 0);
  CHECK(symbols.address_of(kHook, "mallo") == 0);
  CHECK(name_at(symbols, libc) == "");
  CHECK(name_at(symbols, 0) == "");
}

TEST_CASE("imported names are not found") {
  ElfSymbols symbols(kHook, start_of_module_with(reinterpret_cast<void*>(&name_at)));
  REQUIRE(symbols.valid());
  CHECK(symbols.address_of(kHook, "dlsym") == 0);
}

TEST_CASE("a function has its size and address") {
  ElfSymbols symbols(kHook, start_of_module_with(in_libc("qsort")));
  std::uint64_t bytes = 0;
  REQUIRE(symbols.address_of(kHook, "getenv", &bytes) != 0);
  CHECK(bytes > 16);
}

TEST_CASE("a name longer than the caller's buffer is cut") {
  ElfSymbols symbols(kHook, start_of_module_with(in_libc("qsort")));
  char name[5];
  std::uint64_t offset = 0;
  REQUIRE(symbols.name_at(kHook, address_in_libc("getenv"), name, sizeof name, offset));
  CHECK(std::string(name) == "gete");
}

TEST_CASE("an unmapped module loses the answer, not the process") {
  const std::uint64_t libc = start_of_module_with(in_libc("qsort"));
  void* const copy =
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(copy != MAP_FAILED);
  std::memcpy(copy, reinterpret_cast<void*>(libc), 4096);  // only the headers: the rest is missing
  munmap(static_cast<char*>(copy) + 4096, 4096);
  std::array<std::byte, 1024> window;

  ElfSymbols headers_only(kHook, reinterpret_cast<std::uint64_t>(copy), window);
  CHECK_FALSE(headers_only.valid());

  munmap(copy, 4096);
  ElfSymbols nothing(kHook, reinterpret_cast<std::uint64_t>(copy), window);
  CHECK_FALSE(nothing.valid());
  CHECK(nothing.address_of(kHook, "malloc") == 0);
  CHECK(name_at(nothing, reinterpret_cast<std::uint64_t>(copy) + 64) == "");
}

TEST_CASE("memory without an ELF module has no names") {
  alignas(4096) static const char text[4096] = "not a module";
  ElfSymbols symbols(kHook, reinterpret_cast<std::uint64_t>(text));
  CHECK_FALSE(symbols.valid());
}

TEST_CASE("a module with a hash table of the older kind only") {
  void* const library = dlopen(LIBRARY_OLD_HASH, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto* const map = static_cast<const link_map*>(library);
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry)
    CHECK(entry->d_tag != DT_GNU_HASH);

  ElfSymbols symbols(kHook, map->l_addr);

  REQUIRE(symbols.valid());
  for (const char* name : {"old_hash_first", "old_hash_second", "old_hash_data",
                           "old_hash_of_a_function_with_a_very_long_name_indeed"}) {
    std::uint64_t bytes = 0;
    CHECK(symbols.address_of(kHook, name, &bytes) ==
          reinterpret_cast<std::uint64_t>(dlsym(library, name)));
    CHECK(bytes != 0);
  }
  CHECK(symbols.address_of(kHook, "getppid") == 0);
  CHECK(symbols.address_of(kHook, "old_hash_third") == 0);
  CHECK(symbols.address_of(kHook, "") == 0);
  dlclose(library);
}

TEST_CASE("a damaged hash table of the older kind ends the search") {
  // One bucket, whose chain goes round in a circle: header, bucket, chain words; then the names.
  struct {
    Elf64_Ehdr header{};
    Elf64_Phdr segments[2]{};
    Elf64_Dyn dynamic[5]{};
    std::uint32_t hash[2 + 1 + 3] = {1, 3, 1, 0, 2, 1};
    Elf64_Sym symbols[3]{};
    char names[16] = "\0one\0two";
  } module;
  std::memcpy(module.header.e_ident, ELFMAG, SELFMAG);
  module.header.e_ident[EI_CLASS] = ELFCLASS64;
  module.header.e_phentsize = sizeof(Elf64_Phdr);
  module.header.e_phnum = 2;
  const auto offset = [&](const void* part) {
    return static_cast<std::uint64_t>(static_cast<const char*>(part) -
                                      reinterpret_cast<const char*>(&module));
  };
  module.header.e_phoff = offset(module.segments);
  module.segments[0].p_type = PT_LOAD;
  module.segments[0].p_flags = PF_R;
  module.segments[0].p_memsz = sizeof module;
  module.segments[1].p_type = PT_DYNAMIC;
  module.segments[1].p_vaddr = offset(module.dynamic);
  module.segments[1].p_memsz = sizeof module.dynamic;
  module.dynamic[0] = {DT_SYMTAB, {offset(module.symbols)}};
  module.dynamic[1] = {DT_STRTAB, {offset(module.names)}};
  module.dynamic[2] = {DT_STRSZ, {sizeof module.names}};
  module.dynamic[3] = {DT_HASH, {offset(module.hash)}};
  for (int i = 1; i <= 2; ++i) {
    module.symbols[i].st_name = i == 1 ? 1 : 5;
    module.symbols[i].st_shndx = 1;
    module.symbols[i].st_value = static_cast<Elf64_Addr>(i) * 16;
  }
  const auto start = reinterpret_cast<std::uint64_t>(&module);
  const auto find = [&](const char* name) {
    return ElfSymbols(kHook, start).address_of(kHook, name);
  };

  REQUIRE(ElfSymbols(kHook, start).valid());
  CHECK(find("one") == start + 16);
  CHECK(find("two") == start + 32);
  CHECK(find("three") == 0);  // by the circle
  module.hash[2 + 1 + 1] = 1u << 30;
  CHECK(find("two") == 0);  // a symbol beyond the table
  module.hash[0] = 1u << 31;
  CHECK(find("one") == 0);  // a chain beyond the module
  module.hash[0] = 0;
  CHECK(find("one") == 0);
}

TEST_CASE("the vDSO, whose table holds offsets, is readable too") {
  void* const clock = dlsym(RTLD_DEFAULT, "clock_gettime");
  REQUIRE(clock != nullptr);
  const auto start = static_cast<std::uint64_t>(getauxval(AT_SYSINFO_EHDR));
  ElfSymbols symbols(kHook, start);
  REQUIRE(symbols.valid());
  const std::uint64_t address = symbols.address_of(kHook, "__vdso_clock_gettime");
  REQUIRE(address > start);
  CHECK(name_at(symbols, address) != "");
}
