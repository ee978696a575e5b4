#include "tools/processes/supervise/unrecorded_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "common/session/directories.h"
#include "common/session/unrecorded_notes.h"
#include "common/system/text.h"
#include "common/text/text.h"
#include "tools/base/directory.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/sessions.h"
#include "tools/bundles/store/bundles.h"
#include "tools/processes/supervise/exit_report.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

// A line of the file.
struct Note {
  pid_t pid = 0, parent_pid = 0;
  std::string reason;
};

// Of whom the last word was not withdrawn.
std::vector<Note> notes_in(const fs::path& file) {
  std::ifstream stream{file};
  std::vector<Note> notes;
  for (std::string line; std::getline(stream, line);) {
    std::string_view rest;
    Note note;
    note.pid = static_cast<pid_t>(system::number_in(line, &rest));
    note.parent_pid = static_cast<pid_t>(system::number_in(rest, &rest));
    note.reason = rest.substr(std::min<std::size_t>(rest.size(), 1));
    if (!note.reason.empty()) {
      notes.push_back(std::move(note));
      continue;
    }
    const auto withdrawn = std::find_if(notes.rbegin(), notes.rend(),
                                        [&](const Note& one) { return one.pid == note.pid; });
    if (withdrawn != notes.rend()) notes.erase(std::next(withdrawn).base());
  }
  return notes;
}

// "env LD_PRELOAD=libjemalloc.so.2 oomrec run -- ./server …": what the user wrote, with the
// recorder behind what took it away. Empty: the words do not name the program.
std::string recording_words(const std::vector<std::string>& words, std::string_view reason) {
  const auto names_program = [&](const std::string& word) {
    return reason.starts_with(fmt::format("{} ", text::base_name(word)));
  };
  if (words.empty()) return {};
  const auto program = std::find_if(words.begin() + 1, words.end(), names_program);
  if (program == words.end()) return {};
  std::string before;
  for (auto word = words.begin(); word != program; ++word) before += *word + '\0';
  before = mask_secrets(std::move(before));
  std::string text;
  for (const std::string_view word : split(before, '\0'))
    if (!word.empty()) text += shell_word(word) + ' ';
  return fmt::format("{}oomrec run -- {}{}", text, shell_word(*program),
                     program + 1 == words.end() ? "" : " …");
}

std::string run_name_in(const Settings& settings) {
  const auto named = std::find_if(settings.begin(), settings.end(), [](const auto& setting) {
    return setting.first == kProcessTreeVariable;
  });
  return named == settings.end() ? std::string{} : named->second;
}

// Files of runs that were killed, and so could not take them.
void remove_old(const fs::path& directory) {
  constexpr auto kOld = std::chrono::hours{24 * 7};
  for (const fs::path& path : entries_of(directory)) {
    std::error_code error;
    if (path.extension() == session::kNotesSuffix &&
        fs::file_time_type::clock::now() - fs::last_write_time(path, error) > kOld && !error)
      fs::remove(path, error);
  }
}

struct Notes {
  std::vector<Note> taken;
  bool are_more = false;  // than fit into the file
};

Notes take_notes(const Launched& launched) {
  const std::string run = run_name_in(launched.settings);
  const char* const outer = std::getenv(kProcessTreeVariable);
  const bool is_outermost = outer == nullptr || run != outer;
  const pid_t program = launched.facts.pid;
  const auto is_seen = [&](pid_t pid) {
    return pid == program || launched.descendants.contains(pid);
  };
  Notes notes;
  for (const fs::path& directory : bundles::session_directories(
           bundles::dump_directories(launched.options.dump_dir), launched.options.session_dir)) {
    if (run.empty() ||
        !session::open_own_directory(directory.c_str(), session::IfMissing::fail).is_open())
      continue;
    remove_old(directory);
    char buffer[4096];
    system::Text path{buffer};
    session::append_notes_path(path, directory.native(), run);
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path.c_str(), error);
    if (error) continue;
    notes.are_more |= bytes >= session::kMostNoteBytes;
    for (Note& note : notes_in(path.c_str())) {
      if (!is_outermost && !is_seen(note.pid) && !is_seen(note.parent_pid)) continue;
      if (!is_outermost) session::add_note(path.c_str(), {note.pid, note.parent_pid, {}});
      notes.taken.push_back(std::move(note));
    }
    if (is_outermost) fs::remove(path.c_str(), error);
  }
  // The program first.
  std::stable_partition(notes.taken.begin(), notes.taken.end(),
                        [&](const Note& note) { return note.pid == program; });
  return notes;
}

}  // namespace

std::string take_unrecorded_line(const Launched& launched) {
  const auto [taken, are_more] = take_notes(launched);
  if (taken.empty()) return {};
  const Note& first = taken.front();
  const std::string words = first.pid == launched.facts.pid
                                ? recording_words(launched.words, first.reason)
                                : std::string{};
  std::string line = fmt::format("not recorded: {}", printable(first.reason));
  if (taken.size() > 1)
    line += fmt::format(", and {}{} more", are_more ? "at least " : "",
                        plural(taken.size() - 1, "process", "processes"));
  return fmt::format(
      "{}; to record it{}", line,
      words.empty() ? ", write oomrec run where it is started" : ": " + printable(words));
}

}  // namespace oomrec::tools::processes
