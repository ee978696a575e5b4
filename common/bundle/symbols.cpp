// symbols.json: build-id + offset → names, for the request, a crash and the 100 largest holders;
// and address → name, for code that was made at run time.
//
// Inside the process only names of functions are looked up (.dynsym in memory, .symtab of small
// files). A reader that has the program's files adds file, line and inlined frames. Looking up
// a name scans a library's symbols, so the total time is limited.
#include <algorithm>

#include "common/bundle/files.h"
#include "common/bundle/largest.h"
#include "common/names/perf_map.h"
#include "common/system/files.h"

namespace oomrec::bundle {
namespace {

using session::TableId;

constexpr std::size_t kHolders = 100;
constexpr std::uint64_t kTimeNs = 1'000'000'000;

// Collects distinct native frames in a fixed array, in no particular order.
class FrameSet {
 public:
  enum class Of : std::uint8_t { modules, generated_code };

  FrameSet(std::span<std::uint64_t> words, Of of) noexcept : words_(words), of_(of) {}

  void add_stack(const session::View& view, std::uint32_t node) noexcept {
    view.walk(node, [&](std::uint64_t frame) { add_frame(frame); });
  }

  void add_frame(std::uint64_t frame) noexcept {
    if (session::kind_of(frame) == session::FrameKind::native &&
        (session::module_of(frame) == 0) == (of_ == Of::generated_code))
      add(frame & ~(std::uint64_t{1} << 61));  // without the `guessed` flag
  }

  // Those of the request, a crash, and the largest holders. `largest`: memory for these.
  void add_important(const Job& job, std::span<LargestHolder> largest) noexcept {
    session::Failure failure{};
    if (job.view.read(TableId::failures, job.cause.failure, failure))
      add_stack(job.view, failure.node);
    const session::Crash& crash = job.view.header().crash;
    for (std::uint32_t i = 0; i < std::min(crash.frame_count, session::kCrashFrames); ++i)
      add_frame(crash.frames[i]);
    const std::size_t count = find_largest(job.view, largest);
    session::Holder holder{};
    for (std::size_t i = 0; i < count; ++i)
      if (job.view.read(TableId::holders, largest[i].holder, holder))
        add_stack(job.view, holder.node);
  }

  std::span<const std::uint64_t> sorted() noexcept {
    make_distinct();
    return words_.first(used_);
  }
  bool is_full() const noexcept { return used_ == words_.size(); }

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
  const Of of_;
  std::size_t used_ = 0;
};

// `module`: null for code that was made at run time.
void write_symbol(text::JsonWriter& json, const session::View& view, const session::Module* module,
                  std::uint64_t frame, const names::GeneratedName& name) noexcept {
  char build_id[65];
  const std::string_view none;
  json.begin_object(text::JsonLayout::one_line);
  json.key("module").string_or_null(module != nullptr ? view.string(module->path) : none);
  json.key("build_id")
      .string_or_null(module != nullptr ? text::build_id_text(*module, build_id) : none);
  json.key("offset").number(session::offset_of(frame));
  json.key("exact").boolean(session::is_exact(frame));
  json.key("frames").begin_array();
  json.begin_object();
  json.key("function").string_or_null(name.function);
  json.key("file").string_or_null(name.file);
  json.key("line");
  name.line != 0 ? json.number(name.line) : json.null();
  json.key("inlined").boolean(false);
  json.end_object();
  json.end_array();
  json.end_object();
}

void write_exported_names(InHook hook, Job& job, text::JsonWriter& json,
                          std::span<LargestHolder> largest) noexcept {
  if (job.cause.exported_name == nullptr) return;
  FrameSet frames{job.work.sort, FrameSet::Of::modules};
  frames.add_important(job, largest);
  const std::uint64_t deadline = system::monotonic_ns() + kTimeNs;
  session::Module module{};
  char* const name = job.work.line;
  for (const std::uint64_t frame : frames.sorted()) {
    if (!job.view.read(TableId::modules, session::module_of(frame), module)) continue;
    const std::string_view found =
        text::exported_name(hook, job.cause.exported_name, module, frame, {name, 512});
    if (!found.empty()) write_symbol(json, job.view, &module, frame, {found, {}, 0, false});
    if (system::monotonic_ns() > deadline) break;
  }
}

// Of code that was made at run time, the names in the map that its runtime keeps: of every frame,
// as nothing else will tell them.
void write_names_in_map(InHook, Job& job, text::JsonWriter& json,
                        std::span<LargestHolder> largest) noexcept {
  const system::File map = names::open_perf_map(job.view.header());
  if (!map.is_open()) return;
  const std::span<std::uint64_t> words{job.work.sort};
  FrameSet frames{words.first(words.size() / 2), FrameSet::Of::generated_code};
  frames.add_important(job, largest);
  session::Node node{};
  for (std::uint64_t i = 1; !frames.is_full() && i < job.view.count(TableId::nodes); ++i)
    if (job.view.read(TableId::nodes, i, node)) frames.add_frame(node.frame);

  const std::span<std::uint64_t> found = words.first(frames.sorted().size());
  for (std::uint64_t& word : found) {
    const bool is_exact = session::is_exact(word);
    word = names::wanted(session::offset_of(word) - (is_exact ? 0 : 1), is_exact);
  }
  std::sort(found.begin(), found.end());
  const std::span<std::uint64_t> places = words.subspan(words.size() / 2, found.size());
  names::find_places(map, found, places, job.work.text, kTimeNs);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const names::GeneratedName name = names::name_at(map, places[i], job.work.line);
    if (name.function.empty() && name.file.empty()) continue;
    const bool is_exact = (found[i] & 1) != 0;
    const std::uint64_t offset = names::address_of(found[i]) + (is_exact ? 0 : 1);
    write_symbol(json, job.view, nullptr,
                 session::native_frame(0, offset, {.exact = is_exact, .guessed = false}), name);
  }
}

}  // namespace

bool write_symbols(InHook hook, Job& job) noexcept {
  JsonFile file{hook, job, "symbols.json"};
  text::JsonWriter& json = file.json();
  json.begin_object();
  json.key("schema_version").number(1);
  json.key("source").string("exported_names");
  json.key("symbols").begin_array();
  const std::span<LargestHolder> largest{reinterpret_cast<LargestHolder*>(job.work.text), kHolders};
  write_exported_names(hook, job, json, largest);
  write_names_in_map(hook, job, json, largest);
  json.end_array();
  json.end_object();
  return file.done();
}

}  // namespace oomrec::bundle
