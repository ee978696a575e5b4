#include "recorder/fault_injection/site.h"

#include <algorithm>

#include "common/session/python_lines.h"
#include "common/session/view.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::recorder {
namespace {

using options::InjectionRule;
using session::FrameKind;
using session::TableId;

[[gnu::noinline]] bool is_line(const session::View& view, const InjectionRule& rule,
                               std::uint64_t frame) noexcept {
  session::Code code{};
  if (!view.read(TableId::codes, session::code_of(frame), code) ||
      !options::is_file(view.string(code.file), rule.file)) {
    return false;
  }
  return session::python_line(view.header().python.version_hex, code.first_line,
                              view.string(code.line_table),
                              session::instruction_of(frame)) == rule.line;
}

// The module is on this thread's stack, so its memory can be read.
[[gnu::noinline]] bool is_function(InHook hook, const session::View& view,
                                   const InjectionRule& rule, std::uint64_t frame) noexcept {
  session::Module module{};
  const std::uint32_t id = session::module_of(frame);
  if (id == 0 || !view.read(TableId::modules, id, module) ||
      !options::is_module(view.string(module.path), rule.module)) {
    return false;
  }
  symbols::ElfSymbols symbols{hook, module.start};
  std::uint64_t bytes = 0;
  const std::uint64_t start = symbols.address_of(hook, rule.function, &bytes);
  // A return address belongs to the call before it.
  const std::uint64_t pc =
      module.base + session::offset_of(frame) - (session::is_exact(frame) ? 0 : 1);
  return start != 0 && pc >= start && pc - start < std::max<std::uint64_t>(bytes, 1);
}

}  // namespace

[[gnu::noinline]] bool is_site_on_stack(InHook hook, const InjectionRule& rule,
                                        std::uint32_t node) noexcept {
  const session::View view = session::g_session.view();
  const FrameKind kind = rule.line != 0 ? FrameKind::python : FrameKind::native;
  bool found = false;
  view.walk(node, [&](std::uint64_t frame) {
    if (found || session::kind_of(frame) != kind) return;
    found = kind == FrameKind::python ? is_line(view, rule, frame)
                                      : is_function(hook, view, rule, frame);
  });
  return found;
}

}  // namespace oomrec::recorder
