#include "recorder/failures/jvm.h"

#include "common/text/text.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/elf_symbols.h"
#include "recorder/symbols/file_symbols.h"

namespace oomrec::recorder {

using session::g_session;
using session::Module;
using session::TableId;

namespace {

std::uint32_t counter(InHook hook, const symbols::FileSymbols& file, const Module& module,
                      std::string_view symbol) noexcept {
  const std::uint64_t value = file.value_of(symbol);
  std::uint32_t count = 0;
  if (value != 0) symbols::read_own_memory(hook, module.base + value, &count, sizeof count);
  return count;
}

}  // namespace

bool is_libjvm(std::string_view path) noexcept { return text::base_name(path) == "libjvm.so"; }

bool copy_path(const Module& module, std::span<char> path) noexcept {
  text::Text words{path.data(), path.size()};
  words.add(g_session.view().string(module.path));
  return !words.truncated() && !words.view().empty();
}

std::uint32_t count_jvm_errors(InHook hook) noexcept {
  constexpr std::string_view kCounters[] = {
      "_ZN10Exceptions37_out_of_memory_error_java_heap_errorsE",
      "_ZN10Exceptions37_out_of_memory_error_metaspace_errorsE",
      "_ZN10Exceptions43_out_of_memory_error_class_metaspace_errorsE",
  };
  const session::View view = g_session.view();
  Module module{};
  char path[512];
  std::uint32_t errors = 0;
  for (std::uint64_t i = view.count(TableId::modules); i-- > 1 && errors == 0;) {
    if (!view.read(TableId::modules, i, module) || !is_libjvm(view.string(module.path)) ||
        !copy_path(module, path))
      continue;
    const symbols::FileSymbols file(hook, path, module.start);
    if (!file.valid()) continue;
    for (const std::string_view symbol : kCounters) errors += counter(hook, file, module, symbol);
  }
  return errors;
}

}  // namespace oomrec::recorder
