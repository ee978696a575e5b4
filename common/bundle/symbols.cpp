// symbols.json: build-id + offset → names, for the request, a crash and the 100 largest holders.
//
// Inside the process only names of functions are looked up (.dynsym in memory, .symtab of small
// files). A reader that has the program's files adds file, line and inlined frames. Looking up
// a name scans a library's symbols, so the total time is limited.
#include <algorithm>

#include "common/bundle/files.h"
#include "common/bundle/largest.h"
#include "common/calls/calls.h"

namespace oomrec::bundle {
namespace {

using session::TableId;

constexpr std::size_t kHolders = 100;
constexpr std::uint64_t kTimeNs = 1'000'000'000;

// Collects distinct native frames in a fixed array, in no particular order.
class FrameSet {
 public:
  explicit FrameSet(std::span<std::uint64_t> words) noexcept : words_(words) {}

  void add_stack(const session::View& view, std::uint32_t node) noexcept {
    view.walk(node, [&](std::uint64_t frame) { add_frame(frame); });
  }

  void add_frame(std::uint64_t frame) noexcept {
    if (session::kind_of(frame) == session::FrameKind::native && session::module_of(frame) != 0)
      add(frame & ~(std::uint64_t{1} << 61));  // without the `guessed` flag
  }

  std::span<const std::uint64_t> sorted() noexcept {
    make_distinct();
    return words_.first(used_);
  }

 private:
  void add(std::uint64_t frame) noexcept {
    if (used_ == words_.size()) make_distinct();
    if (used_ < words_.size()) words_[used_++] = frame;
  }
  void make_distinct() noexcept {
    const auto end = words_.begin() + static_cast<std::ptrdiff_t>(used_);
    std::sort(words_.begin(), end);
    used_ = static_cast<std::size_t>(std::unique(words_.begin(), end) - words_.begin());
  }

  std::span<std::uint64_t> words_;
  std::size_t used_ = 0;
};

void write_symbol(text::JsonWriter& json, const session::View& view, const session::Module& module,
                  std::uint64_t frame, std::string_view name) noexcept {
  char build_id[65];
  json.begin_object(text::JsonLayout::one_line);
  json.key("module").string_or_null(view.string(module.path));
  json.key("build_id").string_or_null(text::build_id_text(module, build_id));
  json.key("offset").number(session::offset_of(frame));
  json.key("exact").boolean(session::is_exact(frame));
  json.key("frames").begin_array();
  json.begin_object();
  json.key("function").string(name);
  json.key("file").null();
  json.key("line").null();
  json.key("inlined").boolean(false);
  json.end_object();
  json.end_array();
  json.end_object();
}

}  // namespace

bool write_symbols(InHook hook, Job& job) noexcept {
  JsonFile file{hook, job, "symbols.json"};
  text::JsonWriter& json = file.json();
  json.begin_object();
  json.key("schema_version").number(1);
  json.key("source").string("exported_names");
  json.key("symbols").begin_array();
  if (job.cause.exported_name != nullptr) {
    FrameSet frames{job.work.sort};
    session::Failure failure{};
    if (job.view.read(TableId::failures, job.cause.failure, failure))
      frames.add_stack(job.view, failure.node);
    const session::Crash& crash = job.view.header().crash;
    for (std::uint32_t i = 0; i < std::min(crash.frame_count, session::kCrashFrames); ++i)
      frames.add_frame(crash.frames[i]);
    const std::span<LargestHolder> largest{reinterpret_cast<LargestHolder*>(job.work.text),
                                           kHolders};
    const std::size_t count = find_largest(job.view, largest);
    session::Holder holder{};
    for (std::size_t i = 0; i < count; ++i)
      if (job.view.read(TableId::holders, largest[i].holder, holder))
        frames.add_stack(job.view, holder.node);

    const std::uint64_t deadline = calls::monotonic_ns() + kTimeNs;
    session::Module module{};
    char* const name = job.work.line;
    for (const std::uint64_t frame : frames.sorted()) {
      if (!job.view.read(TableId::modules, session::module_of(frame), module)) continue;
      const std::string_view found =
          text::exported_name(hook, job.cause.exported_name, module, frame, {name, 512});
      if (!found.empty()) write_symbol(json, job.view, module, frame, found);
      if (calls::monotonic_ns() > deadline) break;
    }
  }
  json.end_array();
  json.end_object();
  return file.done();
}

}  // namespace oomrec::bundle
