#include "tools/bundles/recover/workers.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/session/directories.h"
#include "common/session/view.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/process_tree.h"
#include "tools/bundles/store/source.h"
#include "tools/recording/analysis/stacks.h"
#include "tools/recording/stack_text/frame_selection.h"
#include "tools/recording/stack_text/stack_text.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;
using session::ChildDeath;
using session::Header;

struct Lost {
  std::int32_t pid;
  std::int32_t wait_status;
  std::uint64_t time_ns;
};

// The first to go is the first.
std::vector<Lost> lost_shortly_before(const recording::Recording& parent,
                                      const deaths::Ending& ending) {
  std::vector<Lost> lost;
  for (const session::EndedChild& ended : parent.header().ended) {
    const std::uint64_t time_ns = ended.time_ns;
    if (time_ns != 0 && deaths::follows(parent.view(), ending, time_ns))
      lost.push_back({ended.pid, ended.wait_status, time_ns});
  }
  std::sort(lost.begin(), lost.end(),
            [](const Lost& a, const Lost& b) { return a.time_ns < b.time_ns; });
  return lost;
}

bool is_of(const Lost& lost, const Header& parent, const Header& recording) {
  return recording.pid == lost.pid && is_parent(parent, recording) &&
         recording.start_monotonic_ns < lost.time_ns;
}

// The worker's bundles, once there is no recording of it left to be made one: another reader may be
// at it.
std::vector<fs::path> bundles_of(const Lost& lost, const Header& parent, const fs::path& sessions,
                                 const std::vector<fs::path>& directories) {
  wait_for_bundle([&] {
    bool on_its_way = false;
    for_each_recording({sessions}, [&](const fs::path& path, const Header& header) {
      on_its_way |= path.extension() == session::kFileSuffix && is_of(lost, parent, header);
    });
    return !on_its_way;
  });
  std::vector<fs::path> found;
  for_each_recording(directories, [&](const fs::path& path, const Header& header) {
    const bool bundled = path.filename() == kRecordingName;
    if (bundled && is_of(lost, parent, header)) found.push_back(path.parent_path());
  });
  return found;
}

VerdictCode verdict_in(const Json& metadata) {
  const auto word = text_of(member(metadata, "verdict"), "code").value_or("");
  const auto at = std::find(kVerdictNames.begin(), kVerdictNames.end(), word);
  return at == kVerdictNames.end() ? VerdictCode::unknown
                                   : static_cast<VerdictCode>(at - kVerdictNames.begin());
}

// The line of a stack that says most: the program's own, else the innermost there is. In running
// text: without the columns of a stack.
std::string line_of(const std::vector<recording::PlaceId>& stack, const recording::Places& places) {
  const std::vector<recording::Interest> interest = recording::interests(stack, places);
  const auto most = std::min_element(interest.begin(), interest.end());
  if (most == interest.end()) return {};
  std::string text = recording::place_text(
      places[stack[static_cast<std::size_t>(most - interest.begin())]], places);
  const auto is_second_blank = [](char a, char b) { return a == ' ' && b == ' '; };
  text.erase(std::unique(text.begin(), text.end(), is_second_blank), text.end());
  return text;
}

// What it held most of itself: what it inherited is its parent's as well.
void tell_largest(const Source& worker, ChildDeath& told) {
  std::vector<recording::HolderFigures> holders = worker.recording->holders();
  std::erase_if(holders,
                [](const recording::HolderFigures& row) { return row.api == Api::inherited; });
  recording::Stacks stacks{*worker.recording, *worker.places};
  const std::vector<recording::StackFigures> rows =
      recording::merged(holders, stacks, recording::At::end);
  if (rows.empty()) return;
  told.largest_bytes = rows.front().bytes;
  system::Text{told.where} << line_of(stacks.places(rows.front().stack), *worker.places);
}

ChildDeath story_of(const Lost& lost, const Source& worker, VerdictCode code,
                    const fs::path& beside) {
  ChildDeath told{};
  told.pid = lost.pid;
  told.wait_status = lost.wait_status;
  told.verdict = static_cast<std::uint32_t>(code);
  told.held_bytes = worker.recording->held_bytes();
  tell_largest(worker, told);
  const std::string executable = worker.recording->text(worker.recording->header().executable);
  system::Text{told.program} << text::base_name(executable);
  const std::string link = worker.bundle.lexically_relative(beside).string();
  if (link.size() < sizeof told.bundle) system::Text{told.bundle} << link;
  system::Text{told.summary} << text_of(member(worker.metadata, "verdict"), "summary").value_or("");
  return told;
}

bool may_follow_from_a_child(const deaths::Ending& ending) {
  const bool died = ending.outcome == OutcomeKind::exited || ending.outcome == OutcomeKind::signal;
  return died && !verdict::is_death_by_memory(ending.verdict);
}

}  // namespace

std::optional<ChildDeath> fatal_worker(const recording::Recording& parent,
                                       const deaths::Ending& ending, const fs::path& sessions,
                                       const fs::path& bundles) {
  if (!may_follow_from_a_child(ending)) return std::nullopt;
  const std::vector<Lost> lost_workers = lost_shortly_before(parent, ending);
  if (lost_workers.empty()) return std::nullopt;
  const std::string program = parent.text(parent.header().executable);
  std::vector<fs::path> directories = dump_directories();
  directories.push_back(bundles.lexically_normal());
  directories.push_back(sessions);  // where those go that could be written nowhere else
  for (const Lost& lost : lost_workers) {
    for (const fs::path& path : bundles_of(lost, parent.header(), sessions, directories)) {
      const VerdictCode code = verdict_in(read_json(path / "metadata.json"));
      if (verdict::fatal_to_parent(code).empty()) continue;
      try {
        const Source worker = open_recorded(path);
        if (worker.recording->text(worker.recording->header().executable) == program)
          return story_of(lost, worker, code, bundles.lexically_normal());
      } catch (const Error&) {
        continue;  // a bundle that cannot be read explains nothing
      }
    }
  }
  return std::nullopt;
}

}  // namespace oomrec::tools::bundles
