// captures [EVENTS [PATTERN]]: CPU time of one stack in ns, on stacks that change by the patterns
// of descents.h: of the native walk alone, and of the whole capture including interning.
// The cost of the called functions themselves is subtracted.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cpu_time.h"
#include "descents.h"
#include "recorder/session/writer.h"
#include "recorder/stack/capture.h"

using namespace oomrec;

namespace {

enum class Work { none, walk, capture };
constinit Work g_work = Work::none;
constinit std::uint32_t g_group = 0;
constinit std::uint64_t g_frames = 0;
const auto g_stacks = std::make_unique<stack::ThreadStacks>();

}  // namespace

inline void descents::event(std::size_t) {
  const HookScope scope;
  if (g_work == Work::walk) {
    g_frames += stack::program_stack(scope.in_hook(), *g_stacks).count;
  } else if (g_work == Work::capture) {
    stack::capture(scope.in_hook(), *g_stacks, g_group);
  }
}

namespace {

double event_ns(Work work, char pattern, unsigned depth, std::uint64_t events) {
  g_work = work;
  descents::make(pattern, depth, events / 8);
  g_frames = 0;
  const double began = cpu_ns();
  descents::make(pattern, depth, events);
  return (cpu_ns() - began) / static_cast<double>(events);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t events = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const InHook hook = OutsideHooks::in_hook();
  if (!session::g_session.create(hook, {.session_directory = "/dev/shm"})) return 1;
  session::g_session.remove_file(hook);
  stack::start();
  stack::set_own_code({});  // the recorder is linked into this program
  g_group = stack::intern(hook, 0, session::special_frame(session::SpecialFrame::thread_group, 0));
  std::puts("pattern  frames  walk ns  capture ns");
  for (const char pattern : {'a', 'b', 'c'}) {
    if (argc > 2 && argv[2][0] != pattern) continue;
    for (const unsigned depth : {10u, 30u, 100u}) {
      const double none = event_ns(Work::none, pattern, depth, events);
      const double walk = event_ns(Work::walk, pattern, depth, events) - none;
      const double frames = static_cast<double>(g_frames) / static_cast<double>(events);
      const double capture = event_ns(Work::capture, pattern, depth, events) - none;
      std::printf("%c%-6u %8.1f %8.1f %11.1f\n", pattern, depth, frames, walk, capture);
    }
  }
}
