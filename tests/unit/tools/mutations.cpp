// Reads a recording again and again, each time damaged in another way: mutations RECORDING ROUNDS.
//
// Through the commands themselves, in one process: each must show something or end with an Error.
// Prints how many did which. Modules are renamed, so that no round reads symbol files.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "common/session/view.h"
#include "tools/bundles/opening/open.h"
#include "tools/commands/commands.h"
#include "tools/recording/reading/checkpoints.h"
#include "tools/recording/reading/timeline.h"
#include "tools/views/export/format.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

using Bytes = std::vector<char>;

Bytes contents_of(const char* path) {
  std::ifstream stream{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, {}};
}

void rename_modules(Bytes& bytes) {
  const session::View view{session::Bytes::contiguous(bytes.data(), bytes.size())};
  session::Module module{};
  for (std::uint64_t i = 1; i < view.count(session::TableId::modules); ++i) {
    if (!view.read(session::TableId::modules, i, module)) continue;
    const std::string_view path = view.string(module.path);
    if (!path.empty()) bytes[static_cast<std::size_t>(path.data() - bytes.data())] = '#';
  }
}

// Half of all flips are in the header, where they do most.
Bytes damaged(const Bytes& whole, std::mt19937_64& random) {
  Bytes bytes = whole;
  if (random() % 8 == 0) bytes.resize(random() % whole.size());
  if (bytes.empty()) return bytes;
  for (std::uint64_t flips = random() % 32; flips > 0; --flips) {
    const std::size_t end = random() % 2 == 0
                                ? std::min<std::size_t>(bytes.size(), session::kHeaderBytes)
                                : bytes.size();
    char& byte = bytes[random() % end];
    byte = static_cast<char>(byte ^ 1 << random() % 8);
  }
  return bytes;
}

// What the views over time stand on.
bool reads_history(const std::string& path) {
  const recording::Recording recording{path};
  std::vector<recording::HolderFigures> rows = recording.holders();
  recording.add_ages(rows);
  return recording::timeline_of(recording).moments.size() +
             recording::checkpoints_of(recording).size() >=
         2;
}

bool is_exported(const std::string& path, std::size_t number) {
  const bundles::Source source = bundles::open_source(path);
  recording::Stacks stacks{*source.recording, *source.locations};
  const views::Format& format = views::formats()[number % views::formats().size()];
  views::Output output{"/dev/null", format.encoding};
  for (const views::Content content : format.contents)
    format.write({source, stacks, {content}}, output);
  return true;
}

bool is_shown(const std::string& path, unsigned round) {
  try {
    if (round % 40 == 0)
      return commands::report_command({"-o", "-", path}) == 0;  // takes ten times as long
    switch (round % 9) {
      case 0:
        return commands::show_command({path}) == 0;
      case 1:
        return commands::show_command({"--json", path}) == 0;
      case 2:
        return commands::stats_command({path}) == 0;
      case 3:
        return reads_history(path);
      case 4:
        return commands::leaks_command({path}) == 0;
      case 5:
        return commands::fragmentation_command({"--json", path}) == 0;
      case 6:
        return commands::diff_command({path, path}) == 0;
      case 7:
        return is_exported(path, round / 9);
      default:
        return commands::tree_command({"--at", "peak", "--min-percent", "0", path}) == 0;
    }
  } catch (const Error& error) {
    if (error.code() == Exit::bad_input) return false;
    throw;
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  Bytes whole = contents_of(words[1]);
  const unsigned rounds = static_cast<unsigned>(std::atoi(words[2]));
  rename_modules(whole);
  const int file = memfd_create("damaged", MFD_CLOEXEC);
  if (file < 0 || whole.empty() || std::freopen("/dev/null", "w", stdout) == nullptr) return 2;
  const std::string path = fmt::format("/proc/self/fd/{}", file);

  std::mt19937_64 random{10'000};
  unsigned shown = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    const Bytes bytes = damaged(whole, random);
    if (ftruncate(file, 0) != 0 ||
        pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
      return 2;
    shown += is_shown(path, round);
  }
  fmt::print(stderr, "{} rounds, {} shown, {} refused\n", rounds, shown, rounds - shown);
  return 0;
}
