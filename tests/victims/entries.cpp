// Prints for each function named on the command line where a call of it continues: the library at
// the target of the jump that its code begins with, or "itself" without such a jump.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

// The word that holds the target of the jump; nullptr: the code begins in another way.
#if defined(__x86_64__)
const void* target_word(const unsigned char* code) {
  constexpr unsigned char kEntry[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25};  // endbr64; jmp *…(%rip)
  if (std::memcmp(code, kEntry, sizeof kEntry) != 0) return nullptr;
  std::int32_t offset;
  std::memcpy(&offset, code + sizeof kEntry, sizeof offset);
  return code + sizeof kEntry + sizeof offset + offset;
}
#elif defined(__aarch64__)
const void* target_word(const unsigned char* code) {
  std::uint32_t words[4];  // bti c; adrp x16, page; ldr x16, [x16, #offset]; br x16
  std::memcpy(words, code, sizeof words);
  const bool is_entry = words[0] == 0xd503245f && (words[1] & 0x9f00001f) == 0x90000010 &&
                        (words[2] & 0xffc003ff) == 0xf9400210 && words[3] == 0xd61f0200;
  if (!is_entry) return nullptr;
  const std::uint64_t pages = (words[1] >> 3 & 0x1ffffc) | (words[1] >> 29 & 3);
  const auto distance = static_cast<std::int64_t>(pages << 43) >> 31;
  const auto page = reinterpret_cast<std::uint64_t>(code + 4) & ~std::uint64_t{4095};
  const std::uint64_t at =
      page + static_cast<std::uint64_t>(distance) + (words[2] >> 10 & 4095) * 8;
  return reinterpret_cast<const void*>(at);
}
#endif

const char* library_behind(const char* name) {
  const auto* const code = static_cast<const unsigned char*>(dlsym(RTLD_DEFAULT, name));
  if (code == nullptr) return "nothing";
  const void* const word = target_word(code);
  if (word == nullptr) return "itself";
  const void* target;
  std::memcpy(&target, word, sizeof target);
  Dl_info info;
  return dladdr(target, &info) != 0 ? info.dli_fname : "nowhere";
}

}  // namespace

int main(int count, char** names) {
  for (int i = 1; i < count; ++i) std::printf("%s %s\n", names[i], library_behind(names[i]));
}
