// "crash" and "child" of metadata.json: the signal that ended the process, and the worker whose
// death did.
#pragma once

#include "common/facts/request.h"
#include "common/session/evidence.h"

namespace oomrec::facts {

// The stack has a function write(json).
template <class Stack>
struct Crash {
  std::uint32_t signal = 0;    // 0: none
  std::string_view name = {};  // empty: not one of a crash
  bool has_address = false;
  std::uint64_t address = 0;
  std::int32_t sender_pid = 0;  // 0: the kernel
  session::Thread thread{};
  Stack stack;
};

template <class Stack>
struct Section<Crash<Stack>> {
  static constexpr std::string_view key = "crash";
  static constexpr std::string_view meaning =
      "the signal that ended the process, as its own handler saw it ([deaths.md](deaths.md)); else "
      "`null`";
  static constexpr JsonLayout layout = JsonLayout::lines;
  static bool is_known(const Crash<Stack>& crash) noexcept { return crash.signal != 0; }

  static void describe(auto& v, auto& crash) {
    v.field("signal", crash.signal, "its number");
    v.field("name", known_if(!crash.name.empty(), crash.name), "`SIGSEGV`");
    v.field("address", known_if(crash.has_address, crash.address),
            "`null` if the kernel gives none");
    v.field("sender_pid", known_if(crash.sender_pid != 0, crash.sender_pid), "`null` for a fault");
    v.section(crash.thread);
    v.field("stack", crash.stack, "its innermost 32 frames");
  }
};

template <>
struct Section<session::ChildDeath> {
  static constexpr std::string_view key = "child";
  static constexpr std::string_view meaning =
      "for the verdict `child_killed`: the worker, from its own bundle; else `null`";
  static constexpr JsonLayout layout = JsonLayout::lines;
  static bool is_known(const session::ChildDeath& child) noexcept { return child.pid != 0; }

  static void describe(auto& v, auto& child) {
    v.field("pid", child.pid, "its number");
    v.field("program", Name{child.program}, "what it ran");
    v.field("verdict", named(child.verdict, kVerdictNames), "why it died");
    v.field("held_bytes", child.held_bytes, "what it held");
    v.field("largest_bytes", child.largest_bytes, "what its largest holder had");
    v.field("where", Name{child.where},
            "the line of that holder: the program's own, or the innermost");
    v.field("bundle", Name{child.bundle}, "the worker's bundle, relative to the directory of this");
  }
};

}  // namespace oomrec::facts
