#include "recorder/stack/java.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string_view>

#include "common/machine/java_frames.h"
#include "common/session/view.h"
#include "common/system/memory.h"
#include "common/system/text.h"
#include "recorder/python/codes.h"
#include "recorder/python/interpreter.h"
#include "recorder/stack/modules.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// --- HotSpot's tables --------------------------------------------------------------------------

// Fields, each with the types that have had it (17 to 27). Those of the second list are static:
// their addresses.
// clang-format off
#define OOMREC_JAVA_FIELDS(X) \
  X(heaps_count, "GrowableArrayBase", "", "_len") X(heaps_data, "GrowableArray<int>", "", "_data") \
  X(heap_memory, "CodeHeap", "", "_memory") X(heap_map, "CodeHeap", "", "_segmap") \
  X(heap_segment, "CodeHeap", "", "_log2_segment_size") \
  X(low, "VirtualSpace", "", "_low") X(high, "VirtualSpace", "", "_high") \
  X(used, "HeapBlock::Header", "", "_used") \
  X(name, "CodeBlob", "", "_name") X(frame_size, "CodeBlob", "", "_frame_size") \
  X(code_begin, "CodeBlob", "", "_code_begin") X(code_offset, "CodeBlob", "", "_code_offset") \
  X(mutable_data, "CodeBlob", "", "_mutable_data") \
  X(relocation_size, "CodeBlob", "", "_relocation_size") \
  X(method, "nmethod", "CompiledMethod", "_method") \
  X(pcs, "nmethod", "", "_scopes_pcs_offset") X(scopes, "nmethod", "", "_scopes_data_offset") \
  X(scopes_begin, "CompiledMethod", "", "_scopes_data_begin") \
  X(dependencies, "nmethod", "", "_dependencies_offset") \
  X(metadata, "nmethod", "", "_metadata_offset") \
  X(immutable_data, "nmethod", "", "_immutable_data") \
  X(const_method, "Method", "", "_constMethod") X(constants, "ConstMethod", "", "_constants") \
  X(code_size, "ConstMethod", "", "_code_size") X(name_index, "ConstMethod", "", "_name_index") \
  X(old_flags, "ConstMethod", "", "_flags") X(flags, "ConstMethod", "", "_flags._flags") \
  X(holder, "ConstantPool", "", "_pool_holder") \
  X(source_index, "ConstantPool", "", "_source_file_name_index") \
  X(class_name, "Klass", "", "_name") \
  X(symbol_length, "Symbol", "", "_length") X(symbol_body, "Symbol", "", "_body")
#define OOMREC_JAVA_STATICS(X) \
  X(call_stub, "StubRoutines", "_call_stub_return_address") \
  X(heaps, "CodeCache", "_heaps") X(cache_low, "CodeCache", "_low_bound") X(cache_high, "CodeCache", "_high_bound")
#define OOMREC_JAVA_SIZES(X) \
  X(heap_block, "HeapBlock") X(const_method_size, "ConstMethod") X(pool_size, "ConstantPool")
// clang-format on

constexpr std::uint32_t kAbsent = ~0u;

struct HotSpot {
#define X(field, ...) std::uint32_t field = kAbsent;
  OOMREC_JAVA_FIELDS(X)
#undef X
#define X(field, ...) std::uint64_t field = 0;
  OOMREC_JAVA_STATICS(X)
  OOMREC_JAVA_SIZES(X)
#undef X
};
constinit HotSpot g_java;
constinit std::atomic<bool> g_ready{false};

// One of HotSpot's tables: rows of a stride, with the offset of each column.
class Table {
 public:
  Table(InHook hook, symbols::ElfSymbols& module, const char* table, const char* stride) noexcept
      : hook_(hook), module_(module), row_(value_of(table)), stride_(value_of(stride)) {}

  std::uint64_t value_of(const char* symbol) const noexcept {
    const std::uint64_t address = module_.address_of(hook_, symbol);
    return address == 0 ? 0 : load<std::uint64_t>(address);
  }

  // visit(row), until it has no `name` any more.
  template <class Visit>
  void for_each(std::uint64_t name, Visit&& visit) const noexcept {
    if (row_ == 0 || stride_ == 0) return;
    for (std::uint64_t row = row_; load<const char*>(row + name) != nullptr; row += stride_)
      visit(row);
  }

 private:
  const InHook hook_;
  symbols::ElfSymbols& module_;
  std::uint64_t row_, stride_;
};

bool read_tables(InHook hook, symbols::ElfSymbols& module, HotSpot& java) noexcept {
  const Table fields{hook, module, "gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride"};
  const std::uint64_t type_at = fields.value_of("gHotSpotVMStructEntryTypeNameOffset");
  const std::uint64_t field_at = fields.value_of("gHotSpotVMStructEntryFieldNameOffset");
  const std::uint64_t offset_at = fields.value_of("gHotSpotVMStructEntryOffsetOffset");
  const std::uint64_t address_at = fields.value_of("gHotSpotVMStructEntryAddressOffset");
  fields.for_each(type_at, [&](std::uint64_t row) noexcept {
    const char* const field_name = load<const char*>(row + field_at);
    if (field_name == nullptr) return;
    const std::string_view type{load<const char*>(row + type_at)}, name{field_name};
#define X(field, owner, other_owner, text)                          \
  if ((type == (owner) || type == (other_owner)) && name == (text)) \
    java.field = load<std::uint32_t>(row + offset_at);
    OOMREC_JAVA_FIELDS(X)
#undef X
#define X(field, owner, text) \
  if (type == (owner) && name == (text)) java.field = load<std::uint64_t>(row + address_at);
    OOMREC_JAVA_STATICS(X)
#undef X
  });
  const Table types{hook, module, "gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride"};
  const std::uint64_t name_at = types.value_of("gHotSpotVMTypeEntryTypeNameOffset");
  const std::uint64_t size_at = types.value_of("gHotSpotVMTypeEntrySizeOffset");
  types.for_each(name_at, [&](std::uint64_t row) noexcept {
    const std::string_view type{load<const char*>(row + name_at)};
#define X(field, text) \
  if (type == (text)) java.field = load<std::uint64_t>(row + size_at);
    OOMREC_JAVA_SIZES(X)
#undef X
  });
  if (java.flags == kAbsent) java.flags = java.old_flags;
  const std::uint32_t needed[] = {
      java.heaps_count, java.heaps_data,   java.heap_memory,  java.heap_map,   java.heap_segment,
      java.low,         java.high,         java.used,         java.name,       java.frame_size,
      java.method,      java.const_method, java.constants,    java.code_size,  java.name_index,
      java.flags,       java.holder,       java.source_index, java.class_name, java.symbol_length,
      java.symbol_body};
  return std::find(std::begin(needed), std::end(needed), kAbsent) == std::end(needed) &&
         java.heaps != 0 && java.cache_low != 0 && java.cache_high != 0 && java.heap_block != 0 &&
         java.const_method_size != 0 && java.pool_size != 0;
}

constinit std::atomic<std::uint64_t> g_libjvm{0};  // where it is mapped; 0: it is not
constinit AddressRange g_libjvm_range;
// Its constructors, which fill in the tables, allocate themselves.
constexpr std::uint32_t kMostTries = 256;
constinit std::atomic<std::uint32_t> g_tries{0};  // left to read them

// A bytecode of a method. Its own address is what the walk has for it.
struct Line {
  std::atomic<std::uint64_t> method, bytecode;
  std::atomic<std::uint64_t> frame;  // in the session
  std::atomic<std::uint32_t> era;    // g_code_era, of `frame`
};
// The lines of a compiled method's frame.
struct Call {
  std::atomic<std::uint64_t> pc;
  std::uint64_t method;
  std::atomic<std::uint32_t> count;  // 0: not written yet
  std::uint32_t lines[kMostInlined];
};
struct Lines {
  static constexpr std::uint32_t kLines = 1 << 16, kCalls = 1 << 14, kMostProbes = 64;
  Line lines[kLines];
  Call calls[kCalls];
};
constinit Lines* g_lines = nullptr;  // nullptr: there was no JVM, or no memory

bool is_ready(InHook hook) noexcept {
  static constinit std::atomic<bool> g_busy{false};
  if (g_ready.load(std::memory_order_acquire)) return true;
  if (g_tries.load(std::memory_order_relaxed) == 0 || g_busy.exchange(true)) return false;
  const std::uint64_t start = g_libjvm.load(std::memory_order_acquire);
  if (start != 0 && !g_ready.load(std::memory_order_relaxed)) {
    g_tries.fetch_sub(1, std::memory_order_relaxed);
    symbols::ElfSymbols module(hook, start);
    HotSpot java;
    if (read_tables(hook, module, java)) {
      if (g_lines == nullptr && prepare_codes())
        g_lines = static_cast<Lines*>(system::map_private(sizeof(Lines)));
      g_java = java;
      g_libjvm_range = loaded_module(module_slot_at(hook, start)).mapped;
      g_ready.store(true, std::memory_order_release);
    }
  }
  g_busy.store(false, std::memory_order_release);
  return g_ready.load(std::memory_order_relaxed);
}

// --- Memory of the JVM, which may be anything --------------------------------------------------

template <class T>
T read_or_zero(InHook hook, std::uint64_t address) noexcept {
  T value{};
  return symbols::read_own_memory(hook, address, &value, sizeof value) ? value : T{};
}

// A compressed stream: UNSIGNED5, whose bytes are never 0 since 20.
class Stream {
 public:
  Stream(InHook hook, std::uint64_t at) noexcept : hook_(hook), at_(at) {}

  std::uint8_t byte() noexcept {
    if (next_ == end_) {
      next_ = 0;
      // Up to the end of the page: what follows may be unreadable.
      end_ = std::min<std::uint64_t>(sizeof window_, 4096 - at_ % 4096);
      if (!symbols::read_own_memory(hook_, at_, window_, end_)) {
        end_ = 0;
        return 0;
      }
      at_ += end_;
    }
    return window_[next_++];
  }

  std::uint32_t number() noexcept {
    constexpr std::uint32_t kLow = 192;
    const std::uint32_t least = g_java.flags == g_java.old_flags ? 0 : 1;
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift <= 24; shift += 6) {
      const std::uint32_t next = byte();
      value += (next - least) << shift;
      if (next < kLow) break;
    }
    return value;
  }

  std::int32_t signed_number() noexcept {
    const std::uint32_t value = number();
    return static_cast<std::int32_t>(value >> 1 ^ (0 - (value & 1)));
  }

 private:
  const InHook hook_;
  std::uint64_t at_;
  std::uint8_t window_[256];
  std::uint64_t next_ = 0, end_ = 0;
};

// --- Methods and their lines -------------------------------------------------------------------

constexpr std::uint64_t kNoBytecode = 0;

std::uint64_t first_bytecode(InHook hook, std::uint64_t method) noexcept {
  const auto constant = read_or_zero<std::uint64_t>(hook, method + g_java.const_method);
  return constant == 0 ? kNoBytecode : constant + g_java.const_method_size;
}

std::uint32_t line_of(InHook hook, std::uint64_t constant, std::uint64_t bytecode) noexcept {
  constexpr std::uint8_t kHasLines = 1, kEscape = 0xff;
  constexpr int kMostRows = 1 << 16;
  const auto size = read_or_zero<std::uint16_t>(hook, constant + g_java.code_size);
  const std::uint64_t code = constant + g_java.const_method_size;
  const auto flags = read_or_zero<std::uint8_t>(hook, constant + g_java.flags);
  if (bytecode - code >= size || (flags & kHasLines) == 0) return 0;
  const auto wanted = static_cast<std::int32_t>(bytecode - code);
  Stream stream{hook, code + size};
  std::int32_t at = 0, line = 0, found = 0, found_at = -1;
  for (int row = 0; row != kMostRows; ++row) {
    const std::uint8_t next = stream.byte();
    if (next == 0) break;
    at += next == kEscape ? stream.signed_number() : next >> 3;
    line += next == kEscape ? stream.signed_number() : next & 7;
    if (at > wanted || at < found_at) continue;
    found_at = at;
    found = line;
  }
  return found > 0 ? static_cast<std::uint32_t>(found) : 0;
}

// Adds a symbol's text up to a '+', which precedes the address of a class without a
// name. Its slashes become `slash`. False: there is no text.
[[gnu::noinline]] bool add_symbol(InHook hook, std::uint64_t symbol, char slash,
                                  system::Text& text) noexcept {
  char letters[256];
  const auto length = read_or_zero<std::uint16_t>(hook, symbol + g_java.symbol_length);
  const std::size_t bytes = std::min<std::size_t>(length, sizeof letters);
  if (symbol == 0 || bytes == 0 ||
      !symbols::read_own_memory(hook, symbol + g_java.symbol_body, letters, bytes))
    return false;
  const std::string_view all{letters, bytes};
  for (const char letter : all.substr(0, all.find('+'))) text << (letter == '/' ? slash : letter);
  return true;
}

bool add_constant(InHook hook, std::uint64_t pool, std::uint64_t index,
                  system::Text& text) noexcept {
  return index != 0 &&
         add_symbol(hook, read_or_zero<std::uint64_t>(hook, pool + g_java.pool_size + index * 8),
                    '/', text);
}

// What a line is called: "com.acme.Cache.keep", "com/acme/Cache.java", 12.
struct Names {
  char function_text[512], file_text[256];
  system::Text function{function_text}, file{file_text};  // file empty: unknown
  std::uint32_t line = 0;                                 // 0: unknown
};

bool find_names(InHook hook, std::uint64_t method, std::uint64_t bytecode, Names& names) noexcept {
  const auto constant = read_or_zero<std::uint64_t>(hook, method + g_java.const_method);
  const auto pool = read_or_zero<std::uint64_t>(hook, constant + g_java.constants);
  const auto holder = read_or_zero<std::uint64_t>(hook, pool + g_java.holder);
  if (!add_symbol(hook, read_or_zero<std::uint64_t>(hook, holder + g_java.class_name), '.',
                  names.function))
    return false;
  const std::size_t package = names.function.view().rfind('.') + 1;  // 0: in none
  for (const char letter : names.function.view().substr(0, package))
    names.file << (letter == '.' ? '/' : letter);
  names.function << '.';
  if (!add_constant(hook, pool, read_or_zero<std::uint16_t>(hook, constant + g_java.name_index),
                    names.function))
    return false;
  const auto source = read_or_zero<std::uint16_t>(hook, pool + g_java.source_index);
  names.line = source == 0 ? 0 : line_of(hook, constant, bytecode);
  if (names.line == 0 || !add_constant(hook, pool, source, names.file)) {
    names.line = 0;
    names.file.clear();
  }
  return true;
}

std::uint64_t hash_of(std::uint64_t a, std::uint64_t b) noexcept {
  return (a ^ std::rotl(b, 32)) * 0x9e37'79b9'7f4a'7c15 >> 20;
}

// The number of the line in the table; kLines: there is no space for it.
std::uint32_t number_of(std::uint64_t method, std::uint64_t bytecode) noexcept {
  const std::uint64_t hash = hash_of(method, bytecode);
  for (std::uint32_t probe = 0; probe != Lines::kMostProbes; ++probe) {
    const auto number = static_cast<std::uint32_t>((hash + probe) % Lines::kLines);
    Line& line = g_lines->lines[number];
    std::uint64_t owner = line.method.load(std::memory_order_relaxed);
    if (owner == 0 && line.method.compare_exchange_strong(owner, method)) {
      line.bytecode.store(bytecode + 1, std::memory_order_relaxed);
      return number;
    }
    // A thread that has just taken it may not have written the bytecode: then the line is twice in
    // the table, by the same name.
    if (owner == method && line.bytecode.load(std::memory_order_relaxed) == bytecode + 1)
      return number;
  }
  return Lines::kLines;
}

// As a return address.
std::uint64_t address_of(std::uint32_t number) noexcept {
  return reinterpret_cast<std::uint64_t>(&g_lines->lines[number]) + 1;
}

// --- Compiled methods --------------------------------------------------------------------------

// HotSpot's PcDesc.
struct ScopeAt {
  std::int32_t pc;  // from the beginning of the code
  std::int32_t scope, objects, flags;
};

// What a compiled method says about its calls. All 0: unknown.
struct DebugInformation {
  std::uint64_t code, pcs, pcs_end, scopes, metadata;
};

DebugInformation debug_information(InHook hook, std::uint64_t blob) noexcept {
  const auto number = [&](std::uint32_t field) noexcept {
    return std::uint64_t{read_or_zero<std::uint32_t>(hook, blob + field)};
  };
  const auto pointer = [&](std::uint32_t field) noexcept {
    return read_or_zero<std::uint64_t>(hook, blob + field);
  };
  const HotSpot& java = g_java;
  const auto has = [](auto... fields) noexcept { return ((fields != kAbsent) && ...); };
  if (has(java.code_begin, java.pcs, java.dependencies, java.scopes_begin, java.metadata))
    return {pointer(java.code_begin), blob + number(java.pcs), blob + number(java.dependencies),
            pointer(java.scopes_begin), blob + number(java.metadata)};
  if (!has(java.code_offset, java.immutable_data, java.pcs, java.scopes, java.mutable_data,
           java.relocation_size))
    return {};  // 23 and 24
  const std::uint64_t constant = pointer(java.immutable_data);
  return {blob + number(java.code_offset), constant + number(java.pcs),
          constant + number(java.scopes), constant + number(java.scopes),
          pointer(java.mutable_data) + number(java.relocation_size)};
}

// Where the scopes of a call are described; 0: nowhere.
std::uint64_t scope_of(InHook hook, const DebugInformation& of, std::uint64_t pc) noexcept {
  std::uint64_t first = 0, last = of.pcs_end < of.pcs ? 0 : (of.pcs_end - of.pcs) / sizeof(ScopeAt);
  const auto wanted = static_cast<std::int32_t>(pc - of.code);
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    const auto found = read_or_zero<ScopeAt>(hook, of.pcs + middle * sizeof(ScopeAt));
    if (found.pc == wanted) return found.scope > 0 ? static_cast<std::uint64_t>(found.scope) : 0;
    (found.pc < wanted ? first : last) = found.pc < wanted ? middle + 1 : middle;
  }
  return 0;
}

void find_lines(InHook hook, const JavaCode& code, std::uint64_t pc, std::uint64_t method,
                std::uint32_t (&lines)[kMostInlined], std::uint32_t& count) noexcept {
  const DebugInformation of = debug_information(hook, code.blob);
  const auto add = [&](std::uint64_t found, std::uint64_t bytecode) noexcept {
    const std::uint32_t number = found == 0 ? Lines::kLines : number_of(found, bytecode);
    if (number != Lines::kLines) lines[count++] = number;
  };
  count = 0;
  for (std::uint64_t scope = scope_of(hook, of, pc); scope != 0 && count != kMostInlined;) {
    Stream stream{hook, of.scopes + scope};
    const std::uint64_t caller = stream.number();
    const std::uint64_t index = stream.number();
    const std::uint64_t bytecode = stream.number() - 1;
    if (index == 0) break;
    const auto found = read_or_zero<std::uint64_t>(hook, of.metadata + (index - 1) * 8);
    const std::uint64_t from = first_bytecode(hook, found);
    add(from == 0 ? 0 : found, bytecode > 0xffff ? kNoBytecode : from + bytecode);
    if (caller >= scope) break;
    scope = caller;
  }
  if (count == 0) add(method, kNoBytecode);  // native, or about to be thrown away
}

std::uint32_t copy_lines(const Call& call, std::span<std::uint64_t> addresses) noexcept {
  const auto count = std::min(call.count.load(std::memory_order_acquire),
                              static_cast<std::uint32_t>(addresses.size()));
  for (std::uint32_t i = 0; i != count; ++i) addresses[i] = address_of(call.lines[i]);
  return count;
}

// --- The code cache ----------------------------------------------------------------------------

// What the code cache has at `pc`; 0: nothing.
std::uint64_t blob_at(std::uint64_t pc) noexcept {
  constexpr std::uint8_t kFree = 0xff;
  constexpr std::uint32_t kMostHeaps = 8;
  const HotSpot& java = g_java;
  const auto heaps = load<std::uint64_t>(java.heaps);
  if (heaps == 0) return 0;
  const auto count = std::min(load<std::uint32_t>(heaps + java.heaps_count), kMostHeaps);
  const auto data = load<std::uint64_t>(heaps + java.heaps_data);
  for (std::uint32_t i = 0; i != count; ++i) {
    const auto heap = load<std::uint64_t>(data + i * 8);
    const auto low = load<std::uint64_t>(heap + java.heap_memory + java.low);
    if (pc < low || pc >= load<std::uint64_t>(heap + java.heap_memory + java.high)) continue;
    const auto map = load<std::uint64_t>(heap + java.heap_map + java.low);
    const auto shift = load<std::uint32_t>(heap + java.heap_segment) & 31;
    std::uint64_t segment = (pc - low) >> shift;
    std::uint8_t back = load<std::uint8_t>(map + segment);
    if (back == kFree) return 0;
    for (; back != 0 && back <= segment; back = load<std::uint8_t>(map + segment)) segment -= back;
    const std::uint64_t block = low + (segment << shift);
    return load<std::uint8_t>(block + java.used) == 0 ? 0 : block + java.heap_block;
  }
  return 0;
}

}  // namespace

JavaCode java_code_at(InHook hook, std::uint64_t pc) noexcept {
  if (!is_ready(hook)) return {};
  if (pc < load<std::uint64_t>(g_java.cache_low) || pc >= load<std::uint64_t>(g_java.cache_high))
    return {};
  const std::uint64_t blob = blob_at(pc);
  const char* const name = blob == 0 ? nullptr : load<const char*>(blob + g_java.name);
  // A guess may have led to code that is still being made, where the name may be anything.
  if (!g_libjvm_range.holds(reinterpret_cast<std::uint64_t>(name))) return {};
  const auto is = [&](const char* other) noexcept { return std::strcmp(name, other) == 0; };
  if (is("Interpreter")) return {JavaCode::Kind::interpreter, blob, 0};
  // By which the JVM calls a method.
  if (g_java.call_stub != 0 && load<std::uint64_t>(g_java.call_stub) == pc)
    return {JavaCode::Kind::entry, blob, 0};
  const bool is_method = is("nmethod") || is("native nmethod");
  const auto words = load<std::int32_t>(blob + g_java.frame_size);
  return {is_method ? JavaCode::Kind::method : JavaCode::Kind::stub, blob,
          words <= 0 ? 0 : static_cast<std::uint64_t>(words) * 8};
}

bool interpreted_java_line(std::uint64_t method, std::uint64_t bytecode,
                           std::uint64_t& address) noexcept {
  if (g_lines == nullptr || method == 0 || method % 8 != 0) return false;
  const std::uint32_t number = number_of(method, bytecode);
  address = address_of(number);
  return number != Lines::kLines;
}

std::uint32_t compiled_java_lines(InHook hook, const JavaCode& code, std::uint64_t pc,
                                  std::span<std::uint64_t> addresses) noexcept {
  if (g_lines == nullptr || code.kind != JavaCode::Kind::method) return 0;
  const auto method = load<std::uint64_t>(code.blob + g_java.method);
  const std::uint64_t hash = hash_of(pc, 0);
  for (std::uint32_t probe = 0; probe != Lines::kMostProbes; ++probe) {
    Call& call = g_lines->calls[(hash + probe) % Lines::kCalls];
    std::uint64_t owner = call.pc.load(std::memory_order_relaxed);
    if (owner == 0 && call.pc.compare_exchange_strong(owner, pc)) {
      std::uint32_t count = 0;
      call.method = method;
      find_lines(hook, code, pc, method, call.lines, count);
      call.count.store(count, std::memory_order_release);
      return copy_lines(call, addresses);
    }
    // The code there may have been another method's.
    if (owner == pc && call.count.load(std::memory_order_acquire) != 0 && call.method == method)
      return copy_lines(call, addresses);
  }
  return 0;
}

std::uint64_t java_frame(InHook hook, std::uint64_t pc) noexcept {
  const std::uint64_t number =
      g_lines == nullptr ? Lines::kLines
                         : (pc - reinterpret_cast<std::uint64_t>(g_lines->lines)) / sizeof(Line);
  if (number >= Lines::kLines) return 0;
  Line& line = g_lines->lines[number];
  const std::uint32_t now = g_code_era.load(std::memory_order_acquire);
  if (line.era.load(std::memory_order_acquire) == now) return line.frame;
  Names names;
  const std::uint64_t bytecode = line.bytecode.load(std::memory_order_relaxed) - 1;
  if (!find_names(hook, line.method, bytecode, names)) return 0;
  const std::uint32_t code = add_code(hook, {names.file.view(), names.function.view(), {}, 0});
  if (code == 0) return 0;
  const std::uint64_t frame = session::script_frame(code, names.line);
  line.frame.store(frame, std::memory_order_relaxed);
  line.era.store(now, std::memory_order_release);
  return frame;
}

void java_module_loaded(InHook hook, std::uint64_t start) noexcept {
  if (!machine::kKnowsJavaFrames || g_libjvm.load(std::memory_order_relaxed) != 0) return;
  symbols::ElfSymbols module(hook, start);
  if (module.address_of(hook, "gHotSpotVMStructs") == 0) return;
  g_tries.store(kMostTries, std::memory_order_relaxed);
  g_libjvm.store(start, std::memory_order_release);
}

void java_modules_unloaded(InHook hook) noexcept {
  const std::uint64_t start = g_libjvm.load(std::memory_order_relaxed);
  std::uint64_t word = 0;
  if (start != 0 && !symbols::read_own_memory(hook, start, &word, sizeof word)) {
    g_ready.store(false, std::memory_order_relaxed);
    g_libjvm.store(0, std::memory_order_relaxed);
  }
}

void java_reset_after_fork() noexcept {
  g_ready.store(false, std::memory_order_relaxed);
  g_tries.store(0, std::memory_order_relaxed);
}

}  // namespace oomrec::stack
