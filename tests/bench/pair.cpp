// What the recorder adds to one malloc and free: everything behind the hook except the stack walk,
// which a double replaces by one fixed stack. Prints ns per pair.
#include <cstdio>
#include <ctime>

#include "recorder/events/heap.h"
#include "recorder/helper/from_process.h"
#include "recorder/recorder.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "tests/unit/append_node.h"

namespace oomrec::stack {
void start() noexcept {}
void reset_thread(InHook, ThreadStacks&) noexcept {}
void on_modules_unloaded(InHook) noexcept {}
void check_next_module(InHook) noexcept {}
void reset_after_fork(InHook) noexcept {}
std::uint32_t intern(InHook hook, std::uint32_t parent, std::uint64_t frame) noexcept {
  std::uint32_t node = 0;
  tests::append_node(session::g_session, node, parent, frame);
  return node;
}
std::uint32_t capture(InHook, ThreadStacks&, std::uint32_t group) noexcept { return group; }
std::uint32_t current_activations(InHook, ThreadStacks&, std::span<Activation>) noexcept {
  return 0;
}
std::uint32_t capture_interrupted(InHook, ThreadStacks&, const Registers&, std::span<std::uint64_t>,
                                  std::span<const Activation>, Progress&) noexcept {
  return 0;
}
bool is_beyond_stack(InHook, std::uint64_t, std::uint64_t) noexcept { return false; }
}  // namespace oomrec::stack

namespace oomrec::bundle {
bool prepare(const char* const*) noexcept { return true; }
bool run_from_process(InHook, const char*, unsigned) noexcept { return true; }
Result write_from_process(InHook, const Cause&, const Destination&, const helper::ReportOptions&,
                          unsigned, bool*) noexcept {
  return Result::failed;
}
bool complete_last_by_crash(InHook, const helper::ReportOptions&, unsigned) noexcept {
  return false;
}
bool complete_texts_of(InHook, std::uint64_t, const text::ExceptionTexts&, unsigned) noexcept {
  return false;
}
std::string_view path_of(InHook, std::uint64_t, std::span<char>, unsigned) noexcept { return {}; }
bool finish(InHook, unsigned) noexcept { return true; }
bool complete_last(InHook, OutcomeKind, std::int32_t, unsigned) noexcept { return true; }
}  // namespace oomrec::bundle

using namespace oomrec;

namespace {

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double pair_ns(std::uint64_t bytes, std::uint64_t live) {
  constexpr std::uint64_t kPairs = 20'000'000;
  const double began = now_ns();
  for (std::uint64_t i = 0; i < kPairs; ++i) {
    const HookScope scope;
    const std::uint64_t address = 0x10000 + i % live * 64;
    recorder::on_allocate(scope.in_hook(), {Space::heap, Api::malloc, address, bytes, bytes + 8});
    recorder::on_free(scope.in_hook(), Space::heap, Api::free, address, bytes + 8);
  }
  return (now_ns() - began) / static_cast<double>(kPairs);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.mode = argc > 1 && argv[1][0] == 'e' ? Mode::exact : Mode::sampled;
  options.session_dir = "/tmp";
  if (!recorder::start(options)) return 1;
  session::g_session.remove_file(OutsideHooks::in_hook());
  std::printf("%s: %.1f ns a pair of 64 bytes", argc > 1 ? argv[1] : "sampled", pair_ns(64, 1));
  std::printf(", %.1f over 100,000 addresses", pair_ns(64, 100'000));
  std::printf(", %.1f of 1 MiB\n", pair_ns(1 << 20, 1));
}
