#include "tools/processes/attach/unobserved.h"

#include <elf.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

#include "common/machine/platform.h"
#include "common/session/functions.h"
#include "tools/processes/attach/gpu_memory.h"
#include "tools/processes/attach/recorder_copies.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/safe_point.h"
#include "tools/recording/symbolize/linked_allocators.h"

namespace oomrec::tools::processes {
namespace {

constexpr std::uint64_t kMostTableBytes = std::uint64_t{256} << 20;  // of a damaged header

// The addresses of the words of a module by which it calls other modules.
std::set<std::uint64_t> call_words(const RemoteMemory& memory, const RemoteModule& module) {
  constexpr std::pair<std::int64_t, std::int64_t> kTables[] = {{DT_JMPREL, DT_PLTRELSZ},
                                                               {DT_RELA, DT_RELASZ}};
  std::set<std::uint64_t> words;
  for (const auto& [table, bytes] : kTables) {
    std::vector<Elf64_Rela> entries(
        std::min(module.dynamic_value(bytes).value_or(0), kMostTableBytes) / sizeof(Elf64_Rela));
    if (!memory.read(module.dynamic_address(table), entries.data(),
                     entries.size() * sizeof(Elf64_Rela)))
      continue;
    for (const Elf64_Rela& entry : entries) {
      const auto type = ELF64_R_TYPE(entry.r_info);
      if (type == machine::kCallSlot || type == machine::kAddressSlot || type == machine::kDataWord)
        words.insert(module.bias() + entry.r_offset);
    }
  }
  return words;
}

// Whether it was linked with -Bsymbolic, so that it calls its own functions first.
bool is_symbolic(const RemoteModule& module) {
  return module.dynamic_value(DT_SYMBOLIC).has_value() ||
         (module.dynamic_value(DT_FLAGS).value_or(0) & DF_SYMBOLIC) != 0;
}

class Search {
 public:
  explicit Search(const RemoteMemory& memory)
      : memory_(memory), mappings_(memory.mappings()), modules_(remote_modules(memory)) {
    std::error_code error;
    program_ =
        std::filesystem::read_symlink("/proc/" + std::to_string(memory.pid()) + "/exe", error)
            .string();
  }

  std::vector<Unobserved> run() {
    const RemoteModule* const copy = any_recording_copy(memory_, modules_);
    if (copy == nullptr) return {};
    find_real_functions(*copy);
    real_.merge(wrapped_driver_functions(modules_, *copy));
    for (const RemoteModule& module : modules_) {
      if (is_recorder(module) || is_loader(module) || is_c_library(module)) continue;
      if (module.path() == program_ && defines_malloc(module)) own_allocators_.insert(&module);
      add_words(module);
      add_linked_allocators(module);
    }
    for (const RemoteModule* module : own_allocators_) add_own_allocator(*module);
    std::ranges::stable_sort(found_, {}, &Found::start);
    std::vector<Unobserved> found;
    for (Found& one : found_) found.push_back(std::move(one.what));
    return found;
  }

 private:
  struct Found {
    std::uint64_t start;  // of the module
    Unobserved what;
  };

  static bool defines_malloc(const RemoteModule& module) {
    return module.address_of("malloc") != 0 && module.address_of("free") != 0;
  }

  // Those that the recorder calls: of the C library, or of a library that replaces its malloc. The
  // recorder has its address; what else defines a malloc may be called by some modules only.
  void find_real_functions(const RemoteModule& recorder) {
    for (const RemoteModule& module : modules_)
      if (!is_recorder(module) && !is_loader(module) && !is_c_library(module) &&
          module.path() != program_ && defines_malloc(module))
        other_mallocs_.emplace(module.address_of("malloc"), &module);
    std::set<const RemoteModule*> allocators;
    for_each_variable(memory_, mappings_, recorder, Variables::all,
                      [&](std::uint64_t, std::uint64_t value) {
                        const auto other = other_mallocs_.find(value);
                        if (other != other_mallocs_.end()) allocators.insert(other->second);
                      });
    std::erase_if(other_mallocs_,
                  [&](const auto& other) { return allocators.contains(other.second); });
    for (const RemoteModule& module : modules_)
      if (is_c_library(module) || allocators.contains(&module))
        for (const Function& function : kMemoryFunctions)
          if (const std::uint64_t address = module.address_of(function.name))
            real_.emplace(address, function.name);
  }

  void add_own_allocator(const RemoteModule& module) {
    std::set<std::string> functions;
    for (const Function& function : kMemoryFunctions)
      if (module.address_of(function.name) != 0) functions.emplace(function.name);
    add(module, Unobserved::Why::own_allocator, functions);
  }

  void add_linked_allocators(const RemoteModule& module) {
    std::vector<std::string> allocators;
    for (const std::string_view name : recording::linked_allocators_in(
             "/proc/" + std::to_string(memory_.pid()) + "/root" + module.path()))
      allocators.emplace_back(name);
    if (!allocators.empty())
      found_.push_back(
          {module.start(), {module.path(), Unobserved::Why::linked_allocator, {}, allocators}});
  }

  void add(const RemoteModule& module, Unobserved::Why why,
           const std::set<std::string>& functions) {
    if (!functions.empty())
      found_.push_back(
          {module.start(), {module.path(), why, {functions.begin(), functions.end()}, {}}});
  }

  // The module's variables, each with its address; an allocator keeps its own functions' addresses.
  void add_words(const RemoteModule& module) {
    const std::set<std::uint64_t> of_calls = call_words(memory_, module);
    if (is_symbolic(module) && is_other_malloc(module.address_of("malloc")))
      own_allocators_.insert(&module);
    std::set<std::string> not_redirected, stored;
    for_each_variable(memory_, mappings_, module, Variables::all,
                      [&](std::uint64_t address, std::uint64_t value) {
                        if (is_other_malloc(value))
                          own_allocators_.insert(other_mallocs_.at(value));
                        const auto real = real_.find(value);
                        if (real == real_.end() || module.contains(value)) return;
                        (of_calls.contains(address) ? not_redirected : stored).insert(real->second);
                      });
    add(module, Unobserved::Why::not_redirected, not_redirected);
    add(module, Unobserved::Why::stored_address, stored);
  }

  bool is_other_malloc(std::uint64_t address) const { return other_mallocs_.contains(address); }

  const RemoteMemory& memory_;
  const std::vector<RemoteMapping> mappings_;
  const std::vector<RemoteModule> modules_;
  std::string program_;
  std::map<std::uint64_t, std::string> real_;
  std::map<std::uint64_t, const RemoteModule*> other_mallocs_;  // by the address of malloc
  std::set<const RemoteModule*> own_allocators_;                // that some module calls
  std::vector<Found> found_;
};

}  // namespace

std::string_view name_of(Unobserved::Why why) {
  switch (why) {
    case Unobserved::Why::own_allocator:
      return "own_allocator";
    case Unobserved::Why::not_redirected:
      return "not_redirected";
    case Unobserved::Why::linked_allocator:
      return "linked_allocator";
    case Unobserved::Why::stored_address:
      break;
  }
  return "stored_address";
}

std::vector<Unobserved> unobserved_in(const RemoteMemory& memory) { return Search{memory}.run(); }

bool is_attached(const RemoteMemory& memory) {
  return recording_copy(memory, remote_modules(memory)) != nullptr;
}

}  // namespace oomrec::tools::processes
