// fuzz TARGET [--rounds N] [--seconds S] [--seed K] [--findings DIR] INPUT…: see README.md.
//
// An INPUT is a file, or a directory of files. Ends with 1 at the first finding, whose input is
// then in DIR (.).
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

// Bounds of memory, in MiB; and a reader that overflows the stack is a finding, too.
extern "C" const char* __asan_default_options() {
  return "handle_abort=1:detect_leaks=0:hard_rss_limit_mb=2048:max_allocation_size_mb=1024";
}
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }

namespace {

namespace fs = std::filesystem;
using namespace oomrec;
using Clock = std::chrono::steady_clock;

constexpr long kMostSeconds = 10;  // of processor time that a reader may take for an input

struct Settings {
  const fuzz::Target* target = nullptr;
  std::uint64_t rounds = 0;
  std::uint64_t seed = 1;
  std::chrono::seconds seconds{0};
  std::string findings = ".";
  std::vector<std::string> inputs;
};
Settings g_settings;
const std::string* g_input = nullptr;  // that is being read

// Called when the process is about to die of the current input.
void save_finding() {
  if (g_input == nullptr) return;
  const std::string path = fmt::format("{}/{}-{:016x}", g_settings.findings,
                                       g_settings.target->name, std::hash<std::string>{}(*g_input));
  std::ofstream{path, std::ios::binary}.write(g_input->data(),
                                              static_cast<std::streamsize>(g_input->size()));
  fmt::print(stderr, "finding: {}\n", path);
  g_input = nullptr;
  fuzz::remove_files();
}

[[noreturn]] void fail(const char* why) {
  fmt::print(stderr, "{}: {}\n", g_settings.target->name, why);
  save_finding();
  _exit(1);
}

// SIGPROF after so much processor time of ours; 0: no more.
void limit_time(long seconds) {
  const itimerval once{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &once, nullptr);
}

struct Tally {
  std::uint64_t inputs = 0, accepted = 0;
  double slowest_s = 0;
};

void read(const std::string& input, Tally& tally) {
  g_input = &input;
  limit_time(kMostSeconds);
  const Clock::time_point began = Clock::now();
  try {
    tally.accepted += g_settings.target->read(input) ? 1 : 0;
  } catch (const std::exception& error) {
    fail(error.what());
  }
  limit_time(0);
  g_input = nullptr;
  ++tally.inputs;
  tally.slowest_s =
      std::max(tally.slowest_s, std::chrono::duration<double>(Clock::now() - began).count());
}

std::string contents_of(const fs::path& path) {
  std::ifstream stream{path, std::ios::binary};
  std::string text;
  std::vector<char> part(1 << 20);
  while (stream.read(part.data(), static_cast<std::streamsize>(part.size())), stream.gcount() > 0)
    text.append(part.data(), static_cast<std::size_t>(stream.gcount()));
  return text;
}

std::vector<std::string> corpus_of(const std::vector<std::string>& inputs) {
  std::vector<fs::path> files;
  for (const fs::path input : inputs) {
    if (!fs::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator{input})
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());  // so that only the seed decides
  std::vector<std::string> corpus;
  for (const fs::path& file : files) corpus.push_back(contents_of(file));
  return corpus;
}

bool read_words(int count, char** words) {
  if (count < 2) return false;
  g_settings.target = fuzz::target_of(words[1]);
  for (int i = 2; i < count; ++i) {
    const std::string_view word{words[i]};
    if (!word.starts_with("--")) {
      g_settings.inputs.emplace_back(word);
      continue;
    }
    if (++i == count) return false;
    if (word == "--rounds")
      g_settings.rounds = std::strtoull(words[i], nullptr, 10);
    else if (word == "--seconds")
      g_settings.seconds = std::chrono::seconds{std::strtoull(words[i], nullptr, 10)};
    else if (word == "--seed")
      g_settings.seed = std::strtoull(words[i], nullptr, 10);
    else if (word == "--findings")
      g_settings.findings = words[i];
    else
      return false;
  }
  return g_settings.target != nullptr && !g_settings.inputs.empty();
}

}  // namespace

int main(int count, char** words) {
  if (!read_words(count, words)) {
    std::fputs(
        "usage: fuzz TARGET [--rounds N] [--seconds S] [--seed K] [--findings DIR] "
        "INPUT…\ntargets:",
        stderr);
    for (const fuzz::Target& target : fuzz::targets()) fmt::print(stderr, " {}", target.name);
    std::fputs("\n", stderr);
    return 2;
  }
  const std::vector<std::string> corpus = corpus_of(g_settings.inputs);
  if (corpus.empty() || std::freopen("/dev/null", "w", stdout) == nullptr) return 2;
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(save_finding);
  signal(SIGPROF, [](int) { fail("more than 10 s of processor time for one input"); });

  Tally tally;
  for (const std::string& input : corpus) read(input, tally);
  fuzz::Mutator mutator{g_settings.seed, corpus, g_settings.target->tokens};
  const Clock::time_point end = Clock::now() + g_settings.seconds;
  for (std::uint64_t round = 0; round < g_settings.rounds || Clock::now() < end; ++round)
    read(mutator.next(), tally);

  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  fmt::print(stderr, "{}: {} inputs, {} accepted, slowest {:.2f} s, {} MiB\n",
             g_settings.target->name, tally.inputs, tally.accepted, tally.slowest_s,
             used.ru_maxrss / 1024);
  fuzz::remove_files();
  return 0;
}
