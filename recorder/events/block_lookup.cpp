#include "recorder/events/block_lookup.h"

#include "common/session/view.h"
#include "common/system/units.h"
#include "common/text/frames.h"
#include "common/text/text.h"
#include "recorder/state/state.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::recorder {

using session::g_session;
using session::TableId;
using session::View;
using text::Text;

namespace {

std::uint64_t born(std::uint32_t birth_s) noexcept {
  return g_session.header().start_realtime_ns + birth_s * kSecondNs;
}

FoundBlock found_for(const View& view, std::uint32_t number, std::uint64_t address,
                     std::uint64_t bytes, std::uint32_t birth_s) noexcept {
  session::Holder holder;
  if (number == 0 || !view.read(TableId::holders, number, holder)) return {};
  return {static_cast<Space>(holder.space), holder.node, address, bytes, born(birth_s)};
}

FoundBlock small_at(std::uint64_t address) noexcept {
  if (!g_state.small_blocks.used()) return {};
  const auto* const word = g_state.small_blocks.find_word(address);
  if (word == nullptr) return {};
  const session::SmallBlock block =
      g_state.small_blocks.unpack(word->load(std::memory_order_relaxed), address);
  if (block.node == 0) return {};
  return {Space::heap, block.node, address, block.bytes, born(block.birth_s)};
}

FoundBlock block_at(InHook hook, const View& view, std::uint64_t key) noexcept {
  live::Block block;
  if (!g_state.blocks.may_hold(key) || !g_state.blocks.find(hook, key, block)) return {};
  return found_for(view, block.holder, live::address_of(key), block.bytes, block.birth_s);
}

// Finds the smallest entry of a table that contains `address`; `key(entry)` is its key, or 0.
template <class Entry, class Key>
void scan_table(const View& view, TableId table, std::uint64_t address, FoundBlock& best,
                Key&& key) noexcept {
  Entry entry;
  const std::uint64_t count = view.count(table);
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!view.read(table, i, entry)) continue;
    const std::uint64_t start = live::address_of(key(entry));
    if (start == 0 || address < start || address - start >= entry.bytes ||
        (best.node != 0 && entry.bytes >= best.bytes))
      continue;
    const FoundBlock found = found_for(view, entry.holder, start, entry.bytes, entry.birth_s);
    if (found.node != 0) best = found;
  }
}

FoundBlock block_around(const View& view, std::uint64_t address) noexcept {
  FoundBlock best;
  scan_table<session::LiveBlock>(view, TableId::live_blocks, address, best,
                                 [](const session::LiveBlock& block) noexcept {
                                   return block.bytes >= kLargeBytes ? block.address.load() : 0;
                                 });
  scan_table<session::DeviceBlock>(view, TableId::device_blocks, address, best,
                                   [](const session::DeviceBlock& block) noexcept {
                                     const auto what = static_cast<session::DeviceKey>(block.what);
                                     const bool has_address = what == session::DeviceKey::address ||
                                                              what == session::DeviceKey::host ||
                                                              what == session::DeviceKey::mapping;
                                     return has_address ? block.key.load() : 0;
                                   });
  if (best.node != 0) return best;
  scan_table<session::LiveRange>(
      view, TableId::live_ranges, address, best, [](const session::LiveRange& range) noexcept {
        const bool counted = range.kind == static_cast<std::uint32_t>(session::RangeKind::counted);
        return counted ? range.start.load() : 0;
      });
  return best;
}

// --- Names --------------------------------------------------------------------------------------

// The names of the module that was read last. They are read through the kernel, because other
// threads may unload the module.
struct Names {
  system::Mutex lock;
  symbols::ModuleNames<64 * 1024> module;
};
constinit Names g_names{};

// Under the lock.
bool name_of_function(InHook hook, std::uint64_t start, std::uint64_t pc, char* name,
                      std::size_t capacity) noexcept {
  return g_names.module.name_at(hook, start, pc, name, capacity);
}

void add_code(Text& line, const View& view, std::uint64_t frame) noexcept {
  session::Code code{};
  view.read(TableId::codes, session::code_of(frame), code);
  const std::string_view file = view.string(code.file), name = view.string(code.name);
  line.add(file.empty() ? "?" : text::base_name(file)).add(':');
  line.number(text::line_of(view, code, frame));
  line.add(' ').add(name.empty() ? "?" : name);
}

void add_native(InHook hook, Text& line, const View& view, std::uint64_t frame) noexcept {
  session::Module module{};
  const std::uint32_t id = session::module_of(frame);
  if (id == 0 || !view.read(TableId::modules, id, module)) {
    line.add("unknown code");
    return;
  }
  char name[192];
  const std::string_view file = text::base_name(view.string(module.path));
  const std::string_view function =
      text::exported_name(hook, name_of_function, module, frame, name);
  if (function.empty()) {
    line.add(file).add('+').hexadecimal(session::offset_of(frame));
  } else {
    line.add(function).add("  (").add(file).add(')');
  }
}

}  // namespace

bool is_small_block(std::uint64_t address, std::uint64_t bytes) noexcept {
  return small_at(address).bytes >= bytes;
}

FoundBlock find_block(InHook hook, std::uint64_t address) noexcept {
  if (phase() != Phase::active || address == 0) return {};
  const View view = g_session.view();
  FoundBlock found = small_at(address);
  if (found.node == 0) found = block_at(hook, view, address);
  if (found.node == 0) found = block_at(hook, view, live::torch_key(address));
  return found.node != 0 ? found : block_around(view, address);
}

std::size_t stack_text(InHook hook, std::uint32_t node, std::span<char> text) noexcept {
  if (text.empty()) return 0;
  Text all{text.data(), text.size()};
  if (phase() != Phase::active) return 0;
  const system::MutexGuard guard(g_names.lock);
  if (!guard) return 0;
  const View view = g_session.view();
  bool fits = true;
  view.walk(node, [&](std::uint64_t frame) noexcept {
    if (!fits || session::kind_of(frame) == session::FrameKind::special) return;
    char buffer[512];
    Text line{buffer};
    if (!all.view().empty()) line.add('\n');
    session::has_code(frame) ? add_code(line, view, frame) : add_native(hook, line, view, frame);
    fits = all.view().size() + line.view().size() < text.size();
    if (fits) all.add(line.view());
  });
  g_names.module.forget();
  return all.view().size();
}

void reset_names_after_fork(InHook) noexcept {
  g_names.lock.unlock();
  g_names.module.forget();
}

}  // namespace oomrec::recorder
