#include "recorder/python/codes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <span>
#include <string_view>

#include "common/system/memory.h"
#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "recorder/python/code_fingerprint.h"
#include "recorder/python/content_table.h"
#include "recorder/python/line_table.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/private_array.h"
#include "recorder/session/reuse.h"
#include "recorder/session/shortage.h"
#include "recorder/session/writer.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

using session::g_session;
using session::StringId;

// One cache line. A sequence lock: odd while written; a writer that finds it odd gives up.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> sequence;
  std::atomic<std::uint32_t> id;
  std::atomic<std::uint32_t> era;  // g_code_era, when it was looked up
  std::atomic<std::uint64_t> code;
  std::atomic<std::uint64_t> words[sizeof(CodeFingerprint) / 8];
};
static_assert(sizeof(Slot) == 64);

constexpr std::uint32_t kProbes = 8;

// The cache by address: small until it is half full, because a program may have little address
// space.
constexpr std::uint32_t kSmallSlots = 512;
constexpr std::uint32_t kLargeSlots = 8192;
struct SlotTable {
  Slot* slots;
  std::uint32_t count;  // a power of two

  Slot& at(std::uint32_t number) const noexcept { return slots[number & (count - 1)]; }
};

struct Tables {
  Slot slots[kSmallSlots];
  std::atomic<std::uint32_t> used;  // of these
  std::atomic<Slot*> large;         // kLargeSlots in their place; nullptr: not yet
  char text[2][4096];               // file and name being converted; under the lock
  char lines[16384];                // a line table likewise
  char copies[2][4096];             // objects of another thread's code, likewise
  char copied_table[16384];

  SlotTable current() noexcept {
    Slot* const many = large.load(std::memory_order_acquire);
    return many != nullptr ? SlotTable{many, kLargeSlots} : SlotTable{slots, kSmallSlots};
  }
};

constinit Tables* g_tables = nullptr;  // private memory: programs without Python do not have it
constinit system::Mutex g_lock;        // of codes and strings
constinit ContentTable g_codes;
constinit ContentTable g_strings;

// What the recorder knows about a code object of the session beside its entry.
struct CodeState {
  std::uint64_t hash;   // of its content; 0: not in use
  std::uint32_t era;    // g_code_era, when a thread last looked it up
  std::uint32_t round;  // the last one that has found a frame of it
};
constexpr std::uint32_t kMostCodes = 1u << 20;  // as many as ContentTable may have
constinit session::PrivateArray<CodeState, kMostCodes> g_states;
constinit session::FreeNumbers g_free;
constinit std::uint32_t g_in_use = 0, g_added = 0;  // added: since the last round for code objects

std::uint64_t hash_of(std::string_view bytes, std::uint64_t seed) noexcept {
  std::uint64_t hash = mix(seed, bytes.size());
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    hash = mix(hash, load<std::uint64_t>(reinterpret_cast<std::uint64_t>(bytes.data())));
  }
  std::uint64_t rest = 0;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&rest));
  return std::max<std::uint64_t>(mix(hash, rest), 1);
}

// --- The interpreter's objects -----------------------------------------------------------------

// A str as UTF-8. Refers to ASCII text in place; converts the rest, and cuts what does not fit.
class Text {
 public:
  Text(std::uint64_t object, std::span<char> buffer) noexcept : buffer_(buffer) {
    const PythonOffsets& at = g_interpreter.at;
    if (object == 0) return;
    const auto state = load<std::uint32_t>(object + at.text_state);
    const auto length = load<std::int64_t>(object + at.text_length);
    if ((state & at.text_compact_mask) == 0 || length <= 0) return;
    const auto characters = static_cast<std::size_t>(std::min(length, kLongest));
    if ((state & at.text_ascii_mask) != 0) {
      text_ = {reinterpret_cast<const char*>(object + at.text_ascii_data), characters};
      return;
    }
    const std::uint64_t data = object + at.text_wide_data;
    const unsigned kind = (state >> at.text_kind_shift) & 7;
    for (std::size_t i = 0; i < characters && used_ + 4 <= buffer_.size(); ++i) {
      append(kind == 1   ? load<std::uint8_t>(data + i)
             : kind == 2 ? load<std::uint16_t>(data + 2 * i)
                         : load<std::uint32_t>(data + 4 * i));
    }
    text_ = {buffer_.data(), used_};
  }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  std::string_view view() const noexcept { return text_; }

 private:
  static constexpr std::int64_t kLongest = 4096;

  void append(std::uint32_t c) noexcept {
    if (c >= 0xdc80 && c <= 0xdcff) {  // surrogateescape: a byte of a path that is not UTF-8
      put(c - 0xdc00);
    } else if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6);
      put(0x80 | (c & 0x3f));
    } else if (c >= 0xd800 && c < 0xe000) {
      put('?');
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12);
      put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    } else {
      put(0xf0 | (c >> 18 & 7));
      put(0x80 | (c >> 12 & 0x3f));
      put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    }
  }
  void put(std::uint32_t byte) noexcept { buffer_[used_++] = static_cast<char>(byte); }

  std::span<char> buffer_;
  std::string_view text_;
  std::size_t used_ = 0;
};

// A live code object, by its type and reference count. Checked on a cache miss only.
bool is_code(std::uint64_t code) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  if (load<std::uint64_t>(code + at.object_type) != g_interpreter.code_type) return false;
  return at.object_refcount == PythonOffsets::kAbsent ||
         load<std::uint32_t>(code + at.object_refcount) != 0;
}

// --- By content --------------------------------------------------------------------------------

StringId intern_text(InHook hook, std::string_view text) noexcept {
  if (text.empty()) return 0;
  const std::uint64_t hash = hash_of(text, 1);
  if (ContentEntry* const found = g_strings.find(hash)) {
    ++found->uses;
    return found->id;
  }
  if (!g_strings.reserve_one(hook)) return 0;
  const StringId id = g_session.take_text(hook, text);
  if (id != 0)
    g_strings.add(hook, hash, id);
  else
    session::count_shortage();
  return id;
}

void release_text(InHook hook, StringId id) noexcept {
  const std::uint64_t hash = hash_of(g_session.view().string(id), 1);
  ContentEntry* const found = id == 0 ? nullptr : g_strings.find(hash);
  if (found == nullptr || found->id != id || --found->uses != 0) return;
  g_strings.erase(hash);
  g_session.give_text(hook, id);
}

// Under the lock, as all that follow.
void release_texts(InHook hook, const session::Code& entry) noexcept {
  release_text(hook, entry.file);
  release_text(hook, entry.name);
  g_session.give_text(hook, entry.line_table);
}

void free_code(InHook hook, std::uint32_t id) noexcept {
  session::Code& entry = g_session.codes.at(id);
  CodeState& state = *g_states.find(id);
  g_codes.erase(state.hash);
  release_texts(hook, entry);
  entry = {};
  state = {};
  --g_in_use;
  g_free.give_back(hook, id);
}

// The entry's number, which is used again. 0: there is no memory.
std::uint32_t add_entry(InHook hook, const session::Code& entry, std::uint64_t hash) noexcept {
  std::uint32_t id = g_free.take(1);
  if (id != 0) {
    g_session.codes.at(id) = entry;
  } else {
    id = g_session.codes.size();
    if (!g_states.prepare(hook, id) ||
        !g_session.codes.append(hook, id, [&](session::Code& added) { added = entry; })) {
      session::count_shortage();
      return 0;
    }
  }
  *g_states.find(id) = {hash, g_code_era.load(std::memory_order_relaxed), 0};
  ++g_in_use;
  ++g_added;
  return id;
}

// Under the lock.
std::uint32_t intern_texts(InHook hook, const CodeTexts& code) noexcept {
  const std::uint64_t hash =
      hash_of(code.line_table, hash_of(code.name, hash_of(code.file, code.first_line)));
  if (const std::uint32_t id = g_codes.id_of(hash)) {
    g_states.find(id)->era = g_code_era.load(std::memory_order_relaxed);
    return id;
  }
  if (!g_codes.reserve_one(hook)) return 0;
  session::Code entry{};
  entry.file = intern_text(hook, code.file);
  entry.name = intern_text(hook, code.name);
  entry.first_line = code.first_line;
  if (entry.file == 0 && entry.name == 0) return 0;
  entry.line_table = g_session.take_text(hook, code.line_table);
  const std::uint32_t id = add_entry(hook, entry, hash);
  if (id != 0)
    g_codes.add(hook, hash, id);
  else
    release_texts(hook, entry);
  return id;
}

// Where a code object's parts are.
struct CodeParts {
  std::uint64_t file, name, line_table;
  std::uint32_t first_line;
};

std::uint32_t intern_parts(InHook hook, const CodeParts& parts) noexcept {
  const std::uint32_t first_line = parts.first_line;
  const Text file(parts.file, g_tables->text[0]);
  const Text name(parts.name, g_tables->text[1]);
  if (first_line == 0 && file.view() == "__init__" && name.view() == "__init__") {
    return kHiddenCode;  // 3.12's helper frame under __init__
  }
  const std::string_view table = lines_of(
      g_interpreter.version_hex, bytes_object(g_interpreter.at, parts.line_table), g_tables->lines);
  return intern_texts(hook, {file.view(), name.view(), table, first_line});
}

// `era`: in which the id is valid.
std::uint32_t intern_content(InHook hook, std::uint64_t code, const CodeFingerprint& fingerprint,
                             std::uint32_t& era) noexcept {
  const system::MutexGuard guard(g_lock);
  if (!guard) return 0;
  era = g_code_era.load(std::memory_order_relaxed);
  return intern_parts(hook, {fingerprint.file, fingerprint.name, fingerprint.line_table,
                             load<std::uint32_t>(code + g_interpreter.at.code_first_line)});
}

// Copies of another thread's objects: their addresses; 0: an object is gone, or does not fit.
std::uint64_t copy_object(InHook hook, std::uint64_t object, std::uint64_t bytes,
                          std::span<char> to) noexcept {
  if (bytes > to.size() || !symbols::read_own_memory(hook, object, to.data(), bytes)) return 0;
  return reinterpret_cast<std::uint64_t>(to.data());
}

std::uint64_t copy_text(InHook hook, std::uint64_t object, std::span<char> to) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  const std::uint64_t header = copy_object(hook, object, at.text_ascii_data, to);
  if (header == 0) return 0;
  const auto state = load<std::uint32_t>(header + at.text_state);
  const auto length = load<std::uint64_t>(header + at.text_length);
  if (length >= to.size()) return 0;
  const bool is_ascii = (state & at.text_ascii_mask) != 0;
  const std::uint64_t kind = (state >> at.text_kind_shift) & 7;
  return copy_object(
      hook, object, is_ascii ? at.text_ascii_data + length : at.text_wide_data + kind * length, to);
}

std::uint64_t copy_bytes(InHook hook, std::uint64_t object, std::span<char> to) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  const std::uint64_t header = copy_object(hook, object, at.bytes_data, to);
  const auto bytes = header == 0 ? ~std::uint64_t{0} : load<std::uint64_t>(header + at.bytes_size);
  return bytes >= to.size() ? 0 : copy_object(hook, object, at.bytes_data + bytes, to);
}

// `copy`: of the code object without its bytecode.
std::uint32_t intern_copy(InHook hook, std::uint64_t copy, std::uint32_t& era) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  const system::MutexGuard guard(g_lock);
  if (!guard) return 0;
  era = g_code_era.load(std::memory_order_relaxed);
  const auto part = [&](std::uint16_t offset) noexcept {
    return load<std::uint64_t>(copy + offset);
  };
  const CodeParts parts{copy_text(hook, part(at.code_file), g_tables->copies[0]),
                        copy_text(hook, part(at.code_name), g_tables->copies[1]),
                        copy_bytes(hook, part(at.code_line_table), g_tables->copied_table),
                        load<std::uint32_t>(copy + at.code_first_line)};
  const bool is_whole = parts.file != 0 && parts.name != 0 && parts.line_table != 0;
  return is_whole ? intern_parts(hook, parts) : 0;
}

// --- The cache by address ----------------------------------------------------------------------

std::uint32_t first_slot(std::uint64_t code) noexcept {
  return static_cast<std::uint32_t>(mix(code, 2));
}

// The large table starts empty: its codes are found by their content. Without memory for one the
// small one stays, and the next codes try again.
void grow() noexcept {
  void* const memory = system::map_private(kLargeSlots * sizeof(Slot));
  Slot* none = nullptr;
  if (memory == nullptr || g_tables->large.compare_exchange_strong(none, static_cast<Slot*>(memory),
                                                                   std::memory_order_acq_rel))
    return;
  system::unmap(memory, kLargeSlots * sizeof(Slot));  // another thread was faster
}

// The id in `slot` if it belongs to `code` as it is now, else 0.
std::uint32_t cached(const Slot& slot, std::uint64_t code, const std::uint64_t* words) noexcept {
  const std::uint32_t before = slot.sequence.load(std::memory_order_acquire);
  if ((before & 1) != 0 || slot.code.load(std::memory_order_relaxed) != code ||
      slot.era.load(std::memory_order_relaxed) != g_code_era.load(std::memory_order_relaxed))
    return 0;
  std::uint64_t different = 0;
  for (std::size_t i = 0; i < std::size(slot.words); ++i) {
    different |= slot.words[i].load(std::memory_order_relaxed) ^ words[i];
  }
  const std::uint32_t id = slot.id.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  return different == 0 && slot.sequence.load(std::memory_order_relaxed) == before ? id : 0;
}

void cache_id(std::uint64_t code, const std::uint64_t* words, std::uint32_t id,
              std::uint32_t era) noexcept {
  const std::uint32_t first = first_slot(code);
  // The slot of this address, else a free one, else any of the window: dead code objects are
  // evicted.
  const SlotTable table = g_tables->current();
  Slot* victim = &table.at(first + static_cast<std::uint32_t>(mix(words[0], words[3]) % kProbes));
  for (std::uint32_t i = kProbes; i-- > 0;) {
    Slot& slot = table.at(first + i);
    const auto owner = slot.code.load(std::memory_order_relaxed);
    if (owner == 0) victim = &slot;
    if (owner == code) {
      victim = &slot;
      break;
    }
  }
  const bool is_free = victim->code.load(std::memory_order_relaxed) == 0;
  if (is_free && table.slots == g_tables->slots &&
      g_tables->used.fetch_add(1, std::memory_order_relaxed) >= kSmallSlots / 2)
    grow();
  std::uint32_t even = victim->sequence.load(std::memory_order_relaxed) & ~1u;
  if (!victim->sequence.compare_exchange_strong(even, even + 1, std::memory_order_acquire)) return;
  std::atomic_thread_fence(std::memory_order_release);
  victim->code.store(code, std::memory_order_relaxed);
  victim->id.store(id, std::memory_order_relaxed);
  victim->era.store(era, std::memory_order_relaxed);
  for (std::size_t i = 0; i < std::size(victim->words); ++i) {
    victim->words[i].store(words[i], std::memory_order_relaxed);
  }
  victim->sequence.store(even + 2, std::memory_order_release);
}

using FingerprintWords = std::array<std::uint64_t, sizeof(CodeFingerprint) / 8>;

std::uint32_t find_cached(std::uint64_t code, const FingerprintWords& words) noexcept {
  const std::uint32_t first = first_slot(code);
  const SlotTable table = g_tables->current();
  for (std::uint32_t i = 0; i < kProbes; ++i) {
    const std::uint32_t id = cached(table.at(first + i), code, words.data());
    if (id != 0) return id;
  }
  return 0;
}

}  // namespace

std::uint32_t intern_code(InHook hook, std::uint64_t code,
                          const CodeFingerprint& fingerprint) noexcept {
  const auto words = std::bit_cast<FingerprintWords>(fingerprint);
  if (const std::uint32_t id = find_cached(code, words)) return id;
  if (!is_code(code)) return 0;
  std::uint32_t era = 0;
  const std::uint32_t id = intern_content(hook, code, fingerprint, era);
  if (id != 0) cache_id(code, words.data(), id, era);
  return id;
}

std::uint32_t intern_code_of_other_thread(InHook hook, std::uint64_t code) noexcept {
  const PythonOffsets& at = g_interpreter.at;
  char memory[256];
  const std::uint64_t bytes = std::max({at.code_file, at.code_name, at.code_line_table}) + 8u;
  const std::uint64_t copy = copy_object(hook, code, bytes, memory);
  if (copy == 0 || !is_code(copy)) return 0;
  // Without a version the fingerprint is of the line table's bytes, which are not in the copy.
  const bool has_version =
      at.code_version != PythonOffsets::kAbsent && load<std::uint32_t>(copy + at.code_version) != 0;
  FingerprintWords words{};
  if (has_version) {
    words = std::bit_cast<FingerprintWords>(code_fingerprint(at, copy));
    if (const std::uint32_t id = find_cached(code, words)) return id;
  }
  std::uint32_t era = 0;
  const std::uint32_t id = intern_copy(hook, copy, era);
  if (id != 0 && has_version) cache_id(code, words.data(), id, era);
  return id;
}

std::uint32_t add_code(InHook hook, const CodeTexts& code) noexcept {
  if (g_tables == nullptr) return 0;
  const system::MutexGuard guard(g_lock);
  return guard ? intern_texts(hook, code) : 0;
}

bool begin_forgetting_codes(bool is_short) noexcept {
  constexpr std::uint32_t kLeast = 256;
  const std::uint32_t least = is_short ? 1 : std::max(kLeast, g_in_use / 2);
  if (g_tables == nullptr || g_added < least) return false;
  g_added = 0;
  g_code_era.fetch_add(1, std::memory_order_release);
  return true;
}

void claim_codes(std::uint32_t first_frame, std::uint32_t end, std::uint32_t round) noexcept {
  for (std::uint32_t i = first_frame; i < end; ++i) {
    const std::uint64_t word =
        session::word_of(g_session.frames.at(i)).load(std::memory_order_relaxed);
    if (!session::has_code(word)) continue;
    if (CodeState* const state = g_states.find(session::code_of(word))) state->round = round;
  }
}

bool forget_codes(InHook hook, std::uint32_t& at, std::uint32_t most,
                  std::uint32_t round) noexcept {
  const system::TryGuard guard(g_lock);
  if (!guard) return false;
  const std::uint32_t now = g_code_era.load(std::memory_order_relaxed);
  for (const std::uint32_t end = std::min(at + most, g_session.codes.size()); at < end; ++at) {
    const CodeState* const state = g_states.find(at);
    if (state != nullptr && state->hash != 0 && state->era != now && state->round != round)
      free_code(hook, at);
  }
  return at >= g_session.codes.size();
}

bool prepare_codes() noexcept {
  if (g_tables == nullptr) g_tables = static_cast<Tables*>(system::map_private(sizeof(Tables)));
  return g_tables != nullptr;
}

void reset_codes(InHook hook) noexcept {
  if (g_tables == nullptr) return;
  if (g_lock.held()) g_lock.unlock();  // its owner does not exist in the child
  g_codes.reset(hook);
  g_strings.reset(hook);
  g_states.reset(hook);
  g_free.reset(hook);
  g_in_use = g_added = 0;
  if (Slot* const large = g_tables->large.exchange(nullptr))
    system::unmap(large, kLargeSlots * sizeof(Slot));
  if (system::call(SYS_madvise, g_tables, sizeof(Tables), MADV_DONTNEED) != 0) {
    std::memset(static_cast<void*>(g_tables), 0, sizeof(Tables));
  }
}

}  // namespace oomrec::stack
