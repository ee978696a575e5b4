#include "tools/processes/supervise/run_recordings.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "common/system/units.h"
#include "tools/base/text.h"
#include "tools/bundles/store/access.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

// What this run calls its processes; empty if it is part of another run, which has named them.
std::string own_tree(const Settings& settings) {
  if (std::getenv(kProcessTreeVariable) != nullptr) return {};
  const auto named = std::ranges::find_if(
      settings, [](const auto& setting) { return setting.first == kProcessTreeVariable; });
  return named == settings.end() ? std::string{} : named->second;
}

bool is_of_tree(const bundles::Session& session, const std::string& name) try {
  if (name.empty() || session.alive || session.unfinished) return false;
  const recording::Recording recording{session.path};
  return recording.view().string(recording.header().process_tree) == name;
} catch (const std::exception&) {
  return false;  // not readable: recover() says so, if it is asked
}

}  // namespace

Directories directories_for(const Options& options) {
  return {bundles::dump_directories(options.dump_dir), bundles::dump_directories(),
          options.session_dir};
}

std::vector<bundles::BundleSummary> bundles_since_start(const std::vector<fs::path>& directories,
                                                        const ProgramFacts& program) {
  std::vector<bundles::BundleSummary> found = bundles::bundles_in(directories);
  std::erase_if(found, [&](const bundles::BundleSummary& bundle) {
    return time_of_text(bundle.created_at_utc) / kSecondNs < program.start_realtime_ns / kSecondNs;
  });
  return found;
}

std::vector<bundles::Session> sessions_since_start(const Directories& directories,
                                                   const ProgramFacts& program) {
  std::vector<bundles::Session> found =
      bundles::sessions_of(directories.dumps, directories.named_session);
  std::erase_if(found, [&](const bundles::Session& session) {
    return session.start_ticks < program.start_ticks;
  });
  return found;
}

bool is_bundle_of(const bundles::BundleSummary& bundle, const ProgramFacts& program) try {
  return bundle.pid == static_cast<std::uint64_t>(program.pid) &&
         is_program(recording::Recording{bundles::recording_in(bundle.path)}.header(), program);
} catch (const std::exception&) {
  return false;
}

fs::path own_bundle(const std::vector<bundles::BundleSummary>& bundles,
                    const ProgramFacts& program) {
  const auto own = std::ranges::find_if(
      bundles, [&](const auto& bundle) { return is_bundle_of(bundle, program); });
  return own == bundles.end() ? fs::path{} : own->path;
}

std::set<pid_t> process_tree_of(pid_t program, const std::vector<bundles::Session>& sessions,
                                const Settings& settings) {
  const std::string name = own_tree(settings);
  std::set<pid_t> tree{program};
  for (const bundles::Session& session : sessions)
    if (is_of_tree(session, name)) tree.insert(session.pid);
  for (std::size_t before = 0; before != tree.size();) {
    before = tree.size();
    for (const bundles::Session& session : sessions)
      if (tree.contains(session.parent_pid)) tree.insert(session.pid);
  }
  return tree;
}

std::set<pid_t> recorded_processes(const std::vector<bundles::Session>& sessions,
                                   const std::vector<bundles::BundleSummary>& bundles,
                                   const ProgramFacts& program) {
  std::set<pid_t> recorded;
  const auto header = std::make_unique<session::Header>();
  for (const bundles::Session& session : sessions) {
    if (session.pid == program.pid && !is_program(session, program)) continue;
    // A descendant that ended well since then has removed its recording.
    if (session.unfinished || !bundles::OwnFile{session.path}.read_header(*header)) continue;
    if (header->state == static_cast<session::u32>(session::State::replaced)) continue;
    recorded.insert(session.pid);
    // The kernel's log may name the helper, which shares the memory.
    recorded.insert(header->helper_pid);
  }
  // The recording of a process that reported its own crash is gone.
  for (const bundles::BundleSummary& bundle : bundles) {
    const auto pid = static_cast<pid_t>(bundle.pid);
    if (pid != program.pid || is_bundle_of(bundle, program)) recorded.insert(pid);
  }
  return recorded;
}

}  // namespace oomrec::tools::processes
