#include "tools/bundles/recover/workers.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/session/directories.h"
#include "common/session/view.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "common/verdict/verdict.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/largest_holder.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/process_tree.h"
#include "tools/bundles/store/source.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;
using session::ChildDeath;
using session::Header;

struct LostWorker {
  std::int32_t pid;
  std::int32_t wait_status;
  std::uint64_t time_ns;
};

// In the order of their ends.
std::vector<LostWorker> lost_shortly_before(const recording::Recording& parent,
                                            const deaths::Ending& ending) {
  std::vector<LostWorker> lost;
  for (const session::EndedChild& ended : parent.header().ended) {
    const std::uint64_t time_ns = ended.time_ns;
    if (time_ns != 0 && deaths::follows(parent.view(), ending, time_ns))
      lost.push_back({ended.pid, ended.wait_status, time_ns});
  }
  std::ranges::sort(lost, {}, &LostWorker::time_ns);
  return lost;
}

bool is_of(const LostWorker& lost, const Header& parent, const Header& recording) {
  return recording.pid == lost.pid && is_parent(parent, recording) &&
         recording.start_monotonic_ns < lost.time_ns;
}

// The worker's bundles. Waits while its recording still exists: another reader may be recovering
// it.
std::vector<fs::path> bundles_of(const LostWorker& lost, const Header& parent,
                                 const fs::path& sessions,
                                 const std::vector<fs::path>& directories) {
  wait_for_bundle([&] {
    bool pending = false;
    for_each_recording({sessions}, [&](const fs::path& path, const Header& header) {
      pending |= path.extension() == session::kFileSuffix && is_of(lost, parent, header);
    });
    return !pending;
  });
  std::vector<fs::path> found;
  for_each_recording(directories, [&](const fs::path& path, const Header& header) {
    const bool bundled = path.filename() == kRecordingName;
    if (bundled && is_of(lost, parent, header)) found.push_back(path.parent_path());
  });
  return found;
}

ChildDeath child_death_of(const LostWorker& lost, const Source& worker, VerdictCode code,
                          const fs::path& beside) {
  ChildDeath death{};
  death.pid = lost.pid;
  death.wait_status = lost.wait_status;
  death.verdict = static_cast<std::uint32_t>(code);
  death.held_bytes = worker.recording->weighed_bytes();  // as its holders are
  if (const auto largest = largest_holder_of(worker)) {
    death.largest_bytes = largest->bytes;
    system::Text{death.where} << largest->where;
  }
  const std::string program = worker.recording->text(program_of(worker.recording->header()));
  system::Text{death.program} << text::base_name(program);
  const std::string link = worker.bundle.lexically_relative(beside).string();
  if (link.size() < sizeof death.bundle) system::Text{death.bundle} << link;
  system::Text{death.summary} << worker.metadata.verdict.summary;
  return death;
}

// A signal from another process is no answer of the parent's own to the loss of a worker.
bool is_sent_by_others(const deaths::Ending& ending, const Header& parent) {
  constexpr int kByOthers[] = {SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM};
  return ending.outcome == OutcomeKind::signal && ending.death().sender_pid != parent.pid &&
         std::ranges::find(kByOthers, ending.value) != std::end(kByOthers);
}

bool may_follow_worker_death(const deaths::Ending& ending, const Header& parent) {
  const bool died = ending.outcome == OutcomeKind::exited || ending.outcome == OutcomeKind::signal;
  return died && !is_sent_by_others(ending, parent) &&
         !verdict::is_death_caused_by_memory(ending.verdict);
}

}  // namespace

std::optional<ChildDeath> fatal_worker(const DeadProcess& process,
                                       std::vector<fs::path> directories) {
  const recording::Recording& parent = process.recording;
  if (!may_follow_worker_death(process.ending, parent.header())) return std::nullopt;
  const std::vector<LostWorker> lost_workers = lost_shortly_before(parent, process.ending);
  if (lost_workers.empty()) return std::nullopt;
  const std::string program = parent.text(parent.header().executable);
  const fs::path dump_directory = fs::path{process.dump_directory}.lexically_normal();
  directories.push_back(dump_directory);
  directories.push_back(process.session_directory);  // the fallback if a dump directory failed
  for (const LostWorker& lost : lost_workers) {
    for (const fs::path& path :
         bundles_of(lost, parent.header(), process.session_directory, directories)) {
      const VerdictCode code = read_file<Metadata>(path).verdict.code;
      if (verdict::kind_of(code).worker.empty()) continue;
      try {
        const Source worker = open_recorded(path);
        if (worker.recording->text(worker.recording->header().executable) == program)
          return child_death_of(lost, worker, code, dump_directory);
      } catch (const Error&) {
        continue;  // a bundle that cannot be read explains nothing
      }
    }
  }
  return std::nullopt;
}

}  // namespace oomrec::tools::bundles
