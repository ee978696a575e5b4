// Prints for each function named on the command line where a call of it continues: the library at
// the target of the jump that its code begins with, or "itself" without such a jump.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

// endbr64; jmp *offset(%rip)
constexpr unsigned char kEntry[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25};

const char* library_behind(const char* name) {
  const auto* const code = static_cast<const unsigned char*>(dlsym(RTLD_DEFAULT, name));
  if (code == nullptr) return "nothing";
  if (std::memcmp(code, kEntry, sizeof kEntry) != 0) return "itself";
  std::int32_t offset;
  std::memcpy(&offset, code + sizeof kEntry, sizeof offset);
  const void* target;
  std::memcpy(&target, code + sizeof kEntry + sizeof offset + offset, sizeof target);
  Dl_info info;
  return dladdr(target, &info) != 0 ? info.dli_fname : "nowhere";
}

}  // namespace

int main(int count, char** names) {
  for (int i = 1; i < count; ++i) std::printf("%s %s\n", names[i], library_behind(names[i]));
}
