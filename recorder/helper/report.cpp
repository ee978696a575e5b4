#include "recorder/helper/report.h"

#include <algorithm>

#include "common/bundle/files.h"
#include "common/bundle/largest.h"
#include "common/text/device_text.h"
#include "common/text/own_code.h"
#include "recorder/helper/demangle.h"

namespace oomrec::helper {
namespace {

using session::FrameKind;
using session::TableId;
using session::View;

// The frames by which a reader recognizes a stack; 0: none.
struct KeyFrames {
  std::uint64_t own_python = 0;  // the innermost line of the program's own code
  std::uint64_t python = 0;      // the innermost of all
  std::uint64_t native = 0;      // the innermost one outside allocators and the C library
  std::uint32_t node = 0;        // the stack they are of
};

KeyFrames key_frames(const View& view, std::uint32_t node) noexcept {
  KeyFrames found;
  found.node = node;
  view.walk(node, [&](std::uint64_t frame) {
    session::Code code{};
    session::Module module{};
    if (session::kind_of(frame) == FrameKind::python) {
      if (found.python == 0) found.python = frame;
      if (found.own_python == 0 && view.read(TableId::codes, session::code_of(frame), code) &&
          text::is_programs_own(view.string(code.file)))
        found.own_python = frame;
    } else if (session::kind_of(frame) == FrameKind::native && found.native == 0 &&
               view.read(TableId::modules, session::module_of(frame), module) &&
               !text::is_plumbing(view.string(module.path))) {
      found.native = frame;
    }
  });
  return found;
}

bool same_line(const View& view, std::uint64_t a, std::uint64_t b) noexcept {
  if (a == b) return true;
  session::Code code{};
  return a != 0 && b != 0 && session::code_of(a) == session::code_of(b) &&
         view.read(TableId::codes, session::code_of(a), code) &&
         text::line_of(view, code, session::instruction_of(a)) ==
             text::line_of(view, code, session::instruction_of(b));
}

// The memory that one Python line holds in one space through one module. Without Python code: one
// holder's.
struct LineFigures {
  KeyFrames frames;  // of the largest holder
  std::uint64_t bytes;
  std::uint64_t blocks;
  std::uint8_t space;
  bool estimated;
};

// A line has several holders when the interpreter reaches it through different internal functions.
// `oomrec show` groups them; the report does so for the largest.
constexpr std::size_t kCandidates = 32;
struct LargestLine {
  bundle::LargestHolder holders[kCandidates];
  LineFigures lines[kCandidates];
};
static_assert(sizeof(LargestLine) <= sizeof bundle::Workspace::sort);

// Which spaces compete for the largest holder: the host's or the devices', after the failed
// request; both if the program itself requested the bundle. PyTorch's blocks lie inside the
// driver's, so the two are never compared: where PyTorch divides a device's memory, its blocks
// count.
struct ComparedSpaces {
  bool host, devices, torch;
  std::uint32_t on_device;  // 0: on any

  ComparedSpaces(const View& view, const bundle::Cause& cause,
                 const verdict::Verdict& verdict) noexcept {
    const bundle::Subject about = bundle::subject_of(view, cause, verdict);
    session::Device device;
    const bool asked = cause.trigger == Trigger::request || cause.trigger == Trigger::exception;
    const bool divided =
        text::read_device(view, about.device, device) && device.torch_reserved_bytes != 0;
    host = asked || is_on_host(about.space);
    torch = !host && divided;
    devices = asked || (!host && !divided);
    on_device = devices && !asked ? about.device : 0;
  }
  bool operator()(Space space) const noexcept {
    if (is_on_host(space)) return host;
    return space == Space::torch ? torch : devices && !is_address_space(space);
  }
};

// Reduces each candidate to its blocks on this device: a holder may have blocks on several. Cost: a
// pass over all device blocks.
void keep_on_device(const View& view, std::uint32_t device,
                    std::span<bundle::LargestHolder> holders,
                    std::span<std::uint64_t> blocks) noexcept {
  for (bundle::LargestHolder& candidate : holders) candidate.live_bytes = 0;
  session::DeviceBlock block{};
  const std::uint64_t count = view.count(session::TableId::device_blocks);
  for (std::uint64_t i = 1; i < count; ++i) {
    if (!view.read(session::TableId::device_blocks, i, block) || block.key == 0 ||
        block.device != device || (block.flags & session::kDeviceDormant) != 0)
      continue;
    const auto found = std::find_if(holders.begin(), holders.end(), [&](const auto& candidate) {
      return candidate.holder == block.holder;
    });
    if (found == holders.end()) continue;
    found->live_bytes += block.bytes;
    ++blocks[static_cast<std::size_t>(found - holders.begin())];
  }
}

// Null: there are no live blocks. Cost: a pass over all holders, and a walk of each candidate's
// stack.
const LineFigures* largest_line(const View& view, LargestLine& memory,
                                const ComparedSpaces& wanted) noexcept {
  const std::size_t found = bundle::find_largest(view, memory.holders, wanted);
  std::uint64_t blocks[kCandidates] = {};
  if (wanted.on_device != 0)
    keep_on_device(view, wanted.on_device, {memory.holders, found}, blocks);
  const LineFigures* largest = nullptr;
  std::size_t count = 0;
  session::Holder holder{};
  for (std::size_t i = 0; i < found; ++i) {
    if (memory.holders[i].live_bytes == 0 || !view.holder(memory.holders[i].holder, holder))
      continue;
    const std::uint64_t live_count = holder.live_count.load(std::memory_order_relaxed);
    const LineFigures figures{key_frames(view, holder.node), memory.holders[i].live_bytes,
                              wanted.on_device != 0 ? blocks[i] : live_count, holder.space,
                              (holder.flags & session::kHolderEstimated) != 0};
    LineFigures* const end = memory.lines + count;
    LineFigures* const line = std::find_if(memory.lines, end, [&](const LineFigures& other) {
      return other.frames.python != 0 && other.space == figures.space &&
             session::module_of(other.frames.native) == session::module_of(figures.frames.native) &&
             same_line(view, other.frames.python, figures.frames.python) &&
             same_line(view, other.frames.own_python, figures.frames.own_python);
    });
    if (line == end) {
      *line = figures;
      ++count;
    } else {
      line->bytes += figures.bytes;
      line->blocks += figures.blocks;
      line->estimated = line->estimated || figures.estimated;
    }
    if (largest == nullptr || line->bytes > largest->bytes) largest = line;
  }
  return largest;
}

// The innermost exported function of the module on this stack that is not the standard library's:
// functions without an export have no name in the process, and every module contains copies of
// containers. Failing that, the innermost exported one; empty: none. Cost: each lookup may be a
// pass over the module's symbols.
std::string_view own_function(InHook hook, const View& view, const KeyFrames& found,
                              const session::Module& module, text::ExportedName names,
                              std::span<char> buffer) noexcept {
  constexpr unsigned kMostLookUps = 16;
  unsigned look_ups = 0;
  std::uint64_t innermost = 0;
  std::string_view reset_after_fork;
  view.walk(found.node, [&](std::uint64_t frame) {
    const bool in_module = session::kind_of(frame) == FrameKind::native &&
                           session::module_of(frame) == session::module_of(found.native);
    if (!in_module || !reset_after_fork.empty() || ++look_ups > kMostLookUps) return;
    const std::string_view name = text::exported_name(hook, names, module, frame, buffer);
    if (name.empty()) return;
    if (!is_standard_library(name)) reset_after_fork = name;
    if (innermost == 0) innermost = frame;
  });
  return reset_after_fork.empty() && innermost != 0
             ? text::exported_name(hook, names, module, innermost, buffer)
             : reset_after_fork;
}

// ", train.py:31 make_batch", or ", make_noise in libsound.so", or " from libsound.so".
void add_location(InHook hook, text::Text& text, const View& view, const KeyFrames& found,
                  text::ExportedName names, std::span<char> buffer) noexcept {
  const std::uint64_t python = found.own_python != 0 ? found.own_python : found.python;
  session::Code code{};
  session::Module module{};
  if (python != 0 && view.read(TableId::codes, session::code_of(python), code)) {
    text.add(", ").add(text::base_name(view.string(code.file))).add(':');
    text.number(text::line_of(view, code, session::instruction_of(python)));
    text.add(' ').add(view.string(code.name));
  } else if (found.native != 0 &&
             view.read(TableId::modules, session::module_of(found.native), module)) {
    const std::string_view name = own_function(hook, view, found, module, names, buffer);
    char readable[256];
    if (name.empty()) {
      text.add(" from ");
    } else {
      text.add(", ").add(demangled(name, readable)).add(" in ");
    }
    text.add(text::base_name(view.string(module.path)));
  }
}

// The state of the device where the request failed, unless the verdict's sentence contains it.
void add_device_line(text::Text& text, const View& view, const bundle::Cause& cause) noexcept {
  session::Failure failure{};
  session::Device device;
  if (cause.failure == 0 || !view.read(TableId::failures, cause.failure, failure) ||
      !text::read_device(view, failure.device.device, device))
    return;
  text.add("oomrec: ");
  text::add_device(text, device);
  text.add(": ");
  text::add_state(text, failure.device);
  text.add('\n');
}

}  // namespace

void report_failure(InHook hook, text::Text& text, const View& view, const bundle::Cause& cause,
                    const verdict::Verdict& verdict, bundle::Workspace& work) noexcept {
  text.add("oomrec: ").add(verdict.summary).add('\n');
  if (verdict.code != VerdictCode::device_out_of_memory) add_device_line(text, view, cause);

  LargestLine& memory = *reinterpret_cast<LargestLine*>(work.sort);
  const ComparedSpaces compared{view, cause, verdict};
  if (const LineFigures* const largest = largest_line(view, memory, compared)) {
    text.add("oomrec: largest holder: ").add(largest->estimated ? "about " : "");
    text.size(largest->bytes).add(" in ").count(largest->blocks);
    text.add(largest->blocks == 1 ? " block" : " blocks");
    add_location(hook, text, view, largest->frames, cause.exported_name, {work.line, 512});
    text.add('\n');
  }
  const std::string_view note = view.string(view.header().heap_note);
  if (!note.empty()) text.add("oomrec: ").add(note).add('\n');
}

namespace {

// Quotes the word for a shell if it needs to be.
void add_shell_word(text::Text& text, std::string_view word) noexcept {
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"_./@%+=:,-"}.find(c) != std::string_view::npos;
  };
  if (std::all_of(word.begin(), word.end(), is_safe)) {
    text.add(word);
    return;
  }
  text.add('\'');
  for (const char c : word) c == '\'' ? text.add("'\\''") : text.add(c);
  text.add('\'');
}

// As seen from `directory`.
std::string_view shortened(std::string_view path, std::string_view directory) noexcept {
  if (!directory.empty() && path.starts_with(directory) && path.size() > directory.size() + 1 &&
      path[directory.size()] == '/')
    path.remove_prefix(directory.size() + 1);
  return path;
}

}  // namespace

bool is_absurd(const View& view, const bundle::Cause& cause,
               const verdict::Verdict& verdict) noexcept {
  session::Failure failure{};
  return verdict.code == VerdictCode::request_too_large && cause.failure != 0 &&
         view.read(TableId::failures, cause.failure, failure) &&
         failure.bytes >= verdict::kAddressSpaceBytes;
}

void report_absurd(text::Text& text, const verdict::Verdict& verdict, std::string_view path,
                   std::string_view directory) noexcept {
  text.add("oomrec: ").add(verdict.summary).add("; bundle ");
  text.add(shortened(path, directory)).add('\n');
}

void report_bundle(text::Text& text, std::string_view path, std::string_view directory) noexcept {
  path = shortened(path, directory);
  text.add("oomrec: bundle ").add(path).add("   read it with: oomrec show");
  // `oomrec show` finds bundles in ./oom_dumps without a path.
  if (!path.starts_with("oom_dumps/")) add_shell_word(text.add(' '), path);
  text.add('\n');
}

void report_fallback_directory(text::Text& text, std::string_view wanted, int error,
                               std::string_view instead) noexcept {
  text.add("oomrec: ").add(wanted).add(": ").add(text::error_words(error)).add("; ");
  if (instead.empty()) {
    text.add("no bundle could be written; ")
        .add(text::error_advice(error, "set OOMREC_DUMP_DIR to another directory"))
        .add('\n');
  } else {
    text.add("the bundle went to ").add(instead).add(" instead\n");
  }
}

}  // namespace oomrec::helper
