#include "recorder/helper/report.h"

#include <algorithm>
#include <new>

#include "common/bundle/files.h"
#include "common/limits/cgroup.h"
#include "common/names/library_functions.h"
#include "common/names/names.h"
#include "common/names/perf_map.h"
#include "common/text/device_text.h"
#include "common/text/own_code.h"
#include "recorder/helper/largest_stack.h"

namespace oomrec::helper {
namespace {

using session::TableId;
using session::View;

// The innermost named function of the frame's module on this stack that is not the standard
// library's, nor an allocator's that is linked in. Failing that, the innermost named one; empty:
// none. Cost: each lookup may be a pass over the module's symbols.
std::string_view own_function(InHook hook, const View& view, std::uint32_t node,
                              std::uint64_t frame_of_module, const session::Module& module,
                              text::ExportedName names, std::span<char> buffer) noexcept {
  constexpr unsigned kMostLookUps = 16;
  unsigned look_ups = 0;
  std::uint64_t innermost = 0;
  std::string_view own;
  view.walk(node, [&](std::uint64_t frame) {
    const bool in_module = session::kind_of(frame) == session::FrameKind::native &&
                           session::module_of(frame) == session::module_of(frame_of_module);
    if (!in_module || !own.empty() || ++look_ups > kMostLookUps) return;
    const std::string_view name = text::exported_name(hook, names, module, frame, buffer);
    if (name.empty() || name == "_start") return;  // which the C library supplies
    char readable[256];
    if (!names::is_allocator_function(name) && !names::is_library_function(name) &&
        !names::is_library_function(names::short_name(name, readable)))
      own = name;
    if (innermost == 0) innermost = frame;
  });
  return own.empty() && innermost != 0 ? text::exported_name(hook, names, module, innermost, buffer)
                                       : own;
}

// The innermost function of this stack that was compiled from the program's own script, if the
// runtime keeps a map; else of a script at all. Empty: none. Its names are in `buffer`.
names::GeneratedName script_function(const View& view, std::uint32_t node,
                                     std::span<char> buffer) noexcept {
  constexpr std::uint64_t kMostNs = 200'000'000;
  constexpr std::size_t kMost = 32;
  names::Wanted innermost[kMost];
  std::size_t count = 0;
  view.walk(node, [&](std::uint64_t frame) noexcept {
    if (session::kind_of(frame) == session::FrameKind::native && session::module_of(frame) == 0 &&
        count < kMost)
      innermost[count++] = names::wanted(session::offset_of(frame) - 1, false);
  });
  if (count == 0) return {};
  const system::File map = names::open_perf_map(view.header());
  if (!map.is_open()) return {};
  names::Wanted sorted[kMost];
  std::uint64_t places[kMost];
  std::copy_n(innermost, count, sorted);
  std::sort(sorted, sorted + count);
  char lines[768];
  names::find_places(map, {sorted, count}, {places, count}, lines, kMostNs);
  names::GeneratedName found;
  std::uint64_t place_of_library = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t place =
        places[std::lower_bound(sorted, sorted + count, innermost[i]) - sorted];
    found = names::name_at(map, place, buffer);
    if (text::is_programs_own_script(found.file)) return found;
    if (place_of_library == 0 && !found.file.empty()) place_of_library = place;
  }
  return names::name_at(map, place_of_library, buffer);
}

// Finds the frame by which a reader recognizes a stack: "train.py:31 make_batch", "server.js:3
// keepImage", or the program's own function.
class LeadingFrame {
 public:
  // `buffer` holds the name of a native function.
  LeadingFrame(InHook hook, const View& view, const KeyFrames& found, text::ExportedName names,
               std::span<char> buffer) noexcept
      : view_(view), frame_(found.own_code != 0 ? found.own_code : found.code) {
    has_code_ = frame_ != 0 && view.read(TableId::codes, session::code_of(frame_), code_);
    if (has_code_) return;
    script_ = script_function(view, found.node, buffer);
    if (!script_.file.empty()) return;
    for (const std::uint64_t frame : {found.own_native, found.native}) {
      session::Module module{};
      if (!function_.empty() || frame == 0 ||
          !view.read(TableId::modules, session::module_of(frame), module))
        continue;
      function_ = own_function(hook, view, found.node, frame, module, names, buffer);
      module_ = text::base_name(view.string(module.path));
    }
  }

  // Adds `before` and the frame. False: only the module is known.
  bool add(text::Text& text, std::string_view before) const noexcept {
    if (has_code_) {
      text.add(before).add(text::base_name(view_.string(code_.file))).add(':');
      text.number(text::line_of(view_, code_, frame_));
      text.add(' ').add(view_.string(code_.name));
      return true;
    }
    if (!script_.file.empty()) {
      text.add(before).add(text::base_name(script_.file)).add(':').number(script_.line);
      text.add(' ').add(script_.function);
      return true;
    }
    if (function_.empty()) return false;
    char readable[256];
    text.add(before).add(names::short_name(function_, readable));
    return true;
  }
  std::string_view module() const noexcept { return module_; }  // empty: the frame is Python's

 private:
  const View& view_;
  const std::uint64_t frame_;  // of Python or of a script; 0: there is none
  session::Code code_{};
  bool has_code_ = false;
  names::GeneratedName script_;
  std::string_view function_;
  std::string_view module_;
};

// ", train.py:31 make_batch", or ", make_noise in libsound.so", or " from libsound.so".
void add_location(text::Text& text, const LeadingFrame& frame) noexcept {
  const bool is_named = frame.add(text, ", ");
  if (!frame.module().empty()) text.add(is_named ? " in " : " from ").add(frame.module());
}

// The verdict's sentence, which tells who asked for how much, with the frame that did.
void add_summary(InHook hook, text::Text& text, const View& view, const bundle::Cause& cause,
                 const verdict::Verdict& verdict, std::span<char> buffer) noexcept {
  std::string_view summary{verdict.summary};
  session::Failure failure{};
  char words[sizeof verdict.summary];
  if (cause.failure != 0 && view.read(TableId::failures, cause.failure, failure)) {
    text::Text request{words};
    verdict::add_request(request, view, failure);
    if (summary.starts_with(request.view())) {
      text.add(request.view());
      summary.remove_prefix(request.view().size());
      const KeyFrames found = key_frames(view, failure.node);
      LeadingFrame{hook, view, found, cause.exported_name, buffer}.add(text, " at ");
    }
  }
  text.add(summary);
}

// Near its cgroup's limit: what that has of shared memory beside what the process maps, which has
// holders. 0 if its pages were never looked at.
std::uint64_t unmapped_shared_bytes(const View& view, const bundle::Cause& cause) noexcept {
  const session::Residency* const look = view.residency();
  if (cause.trigger != Trigger::near_limit || look == nullptr) return 0;
  char directory[limit::kCgroupPathBytes];
  text::Text{directory}.add(view.string(view.header().cgroup));
  const std::uint64_t shared = limit::read_cgroup_shared_bytes(directory);
  const std::uint64_t mapped =
      look->kind_bytes[static_cast<std::size_t>(session::ResidentKind::shared)];
  return shared - std::min(shared, mapped);
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
  constexpr std::uint64_t kLeastShared = std::uint64_t{1} << 20;
  const std::span<char> names{work.line, 512};
  text.add("oomrec: ");
  add_summary(hook, text, view, cause, verdict, names);
  text.add('\n');
  if (verdict.code != VerdictCode::device_out_of_memory) add_device_line(text, view, cause);

  Largest& memory = *reinterpret_cast<Largest*>(work.sort);
  // In the workspace, not on the helper's stack.
  auto& rows = *new (work.text) residency::Rows{view};
  const bool by_resident = residency::is_about_resident_memory(cause.trigger, verdict.limit.kind);
  const StackSum* const largest =
      largest_stack(view, memory, {view, cause, verdict}, by_resident ? &rows : nullptr);
  const std::uint64_t unmapped = by_resident ? unmapped_shared_bytes(view, cause) : 0;
  if (unmapped >= kLeastShared && (largest == nullptr || unmapped > largest->bytes)) {
    text.add("oomrec: largest part: ").size(unmapped);
    text.add(" of shared memory and tmpfs that it does not map\n");
  }
  if (largest != nullptr) {
    text.add("oomrec: largest holder: ").add(memory.is_partial ? "at least " : "");
    text.add(largest->estimated ? "about " : "");
    text.size(largest->bytes).add(" in ").count(largest->blocks);
    text.add(largest->blocks == 1 ? " block" : " blocks");
    if (largest->is_pool)
      text.add(view.header().python.source == session::ObjectSource::own_heap
                   ? ", free in Python's heap"
                   : ", free in Python's pool of small objects");
    add_location(text, {hook, view, largest->frames, cause.exported_name, names});
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

bool is_impossible_size(const View& view, const bundle::Cause& cause,
                        const verdict::Verdict& verdict) noexcept {
  session::Failure failure{};
  return verdict.code == VerdictCode::request_too_large && cause.failure != 0 &&
         view.read(TableId::failures, cause.failure, failure) &&
         failure.bytes >= verdict::kAddressSpaceBytes;
}

void report_impossible_size(text::Text& text, const verdict::Verdict& verdict,
                            std::string_view path, std::string_view directory) noexcept {
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
