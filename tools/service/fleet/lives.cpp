#include "tools/service/fleet/lives.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>
#include <string_view>

#include "common/bundle/session_summary.h"
#include "common/session/notable.h"
#include "common/system/files.h"
#include "common/verdict/verdict.h"
#include "tools/base/directory.h"
#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/dead_process.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/lives.h"
#include "tools/bundles/store/source.h"
#include "tools/deaths/death_observer.h"
#include "tools/recording/live/mapping.h"
#include "tools/views/export/row.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "OOMREC_LIFE_ROWS";
constexpr std::uint64_t kShortestNs = 1'000'000'000;

// Shells and other helpers of a service would make its needs look small.
bool is_worth_a_row(const recording::Recording& recording, std::uint64_t peak_bytes) {
  return peak_bytes >= session::kNotableBytes &&
         recording.end_ns() >= recording.header().start_monotonic_ns + kShortestNs;
}

// By exit code 0, and no scheduler says that it ends the process. The recording of a program that
// has executed another one has not ended with a process.
bool ended_well(const session::Header& header, std::optional<int> wait_status) {
  const auto state = static_cast<session::State>(header.state.load());
  const bool has_exited = state == session::State::exited && header.exit_status.load() == 0;
  return header.told_realtime_ns.load() == 0 && state != session::State::replaced &&
         (wait_status ? *wait_status == 0 : has_exited);
}

// --dump-at-exit has written a bundle, which is a life of its own.
bool has_bundle_at_exit(const recording::Recording& recording, const fs::path& dumps) {
  if (recording.header().bundles_written.load() == 0) return false;
  char key[96];
  const std::string_view process = bundle::process_key(recording.header(), key);
  const std::vector<fs::directory_entry> entries = entries_of(dumps);
  return std::ranges::any_of(entries, [&](const fs::path& path) {
    return bundles::read_file<bundles::Manifest>(path).process == process &&
           bundles::read_file<bundles::Metadata>(path).context == verdict::kReasonAtExit;
  });
}

}  // namespace

bool is_chosen(const std::string& id, double share) {
  std::uint64_t number = parse_number<std::uint64_t>(id, 16).value_or(0);
  // The ids' bits are not alike enough: those of a machine's processes differ in few of what they
  // are made of.
  number = (number ^ number >> 31) * 0x9e3779b97f4a7c15;
  number ^= number >> 32;
  return static_cast<double>(number >> 11) < share * 0x1p53;
}

std::optional<Lives> Lives::from_environment() {
  const std::string word = environment_variable(kVariable);
  if (word.empty()) return {};
  double share = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), share);
  if (error != std::errc{} || end != word.data() + word.size() || !(share >= 0 && share <= 1))
    throw Error{Exit::bad_input,
                fmt::format("{}={} is not a share from 0 to 1", kVariable, printable(word)),
                "0.1 writes a row of every tenth process that ends well."};
  if (share == 0) return {};
  return Lives{share};
}

void Lives::add(const bundles::Session& session, const std::string& tree) {
  if (session.unfinished || processes_.contains(session.path)) return;
  const recording::MappedFile mapped = recording::map_file(session.path);
  if (mapped.bytes == nullptr) return;
  Process process;  // empty: not chosen, so that its file is not mapped again
  try {
    auto recording =
        std::make_unique<recording::Recording>(session.path, mapped.bytes, mapped.size);
    const session::Header& header = recording->header();
    const bool is_own = tree.empty() || recording->view().string(header.process_tree) == tree;
    if (is_own && is_chosen(bundles::death_id(header, 0), share_))
      process.recording = std::move(recording);
  } catch (const Error&) {
    return;  // it is being deleted
  }
  processes_.emplace(session.path, std::move(process));
}

void Lives::sample(const fs::path& recording) {
  const auto at = processes_.find(recording);
  if (at == processes_.end() || at->second.recording == nullptr) return;
  const session::Header& header = at->second.recording->header();
  if (header.pid_namespace != system::pid_namespace()) return;
  at->second.resident_peak_bytes =
      std::max(at->second.resident_peak_bytes, deaths::resident_peak_bytes(header.pid));
}

void Lives::on_end(const fs::path& recording, std::optional<int> wait_status) {
  const auto at = processes_.find(recording);
  if (at == processes_.end()) return;
  Process process = std::move(at->second);
  processes_.erase(at);
  if (process.recording == nullptr || !ended_well(process.recording->header(), wait_status)) return;
  try {
    write(std::move(process.recording), process.resident_peak_bytes);
  } catch (const std::exception& error) {
    remark(fmt::format("{}: {}", kVariable, error.what()));
  }
}

void Lives::write(std::unique_ptr<recording::Recording> recording,
                  std::uint64_t resident_peak_bytes) {
  const session::Header& header = recording->header();
  const std::uint64_t peak = std::max(resident_peak_bytes, header.health.rss_bytes.load());
  const std::string dumps = bundles::dump_directory_of(*recording);
  if (dumps.empty() || !is_worth_a_row(*recording, peak) || has_bundle_at_exit(*recording, dumps))
    return;
  const std::string id = bundles::death_id(header, 0);
  bundles::Source source;
  source.recording = std::move(recording);
  const std::string line =
      views::life_line(source, {.resident_peak_bytes = peak, .weight = 1 / share_});
  if (!bundles::write_life(dumps, id, line))
    remark(fmt::format("{}: {}/lives is another user's", kVariable, printable(dumps)));
}

void Lives::update(const std::vector<bundles::Session>& sessions, const std::string& tree,
                   pid_t program) {
  std::set<fs::path> living;
  for (const bundles::Session& session : sessions) {
    if (!session.alive) continue;
    living.insert(session.path);
    add(session, tree);
    sample(session.path);
  }
  std::vector<fs::path> gone;
  for (const auto& [path, process] : processes_) {
    const bool is_program =
        process.recording != nullptr && process.recording->header().pid == program;
    if (!living.contains(path) && !is_program) gone.push_back(path);
  }
  for (const fs::path& path : gone) on_end(path);
}

void Lives::on_end_of(pid_t program, int wait_status) {
  std::vector<fs::path> own;
  for (const auto& [path, process] : processes_)
    if (process.recording != nullptr && process.recording->header().pid == program)
      own.push_back(path);
  for (const fs::path& path : own) on_end(path, wait_status);
}

}  // namespace oomrec::tools::service
