// The helper's input and working memory, mapped and touched at start. Private to this folder.
//
// Only the thread that has claimed the helper (helper.h) may access it; while the helper works,
// only the helper.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/system/units.h"
#include "common/text/text.h"
#include "recorder/helper/command.h"
#include "recorder/helper/from_process.h"
#include "recorder/helper/helper.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::helper {

inline constexpr std::size_t kMostWritten = 32;  // a process writes fewer bundles
inline constexpr std::size_t kDirectories = 4;   // the latest that the program has named
inline constexpr std::size_t kResults = 64;

// Where a bundle is.
struct WrittenBundle {
  std::uint64_t number;  // 0: there is none
  std::uint32_t directory;
  bool in_fallback;
  char name[64];
};

struct WriterState {
  helper::Stack stack;
  bundle::Workspace work;
  symbols::ModuleNames<64 * 1024> names;
  InHook hook;

  // A bundle to be written.
  session::View view;
  bundle::Cause cause;
  bundle::Destination destination;
  ReportOptions report;
  char directories[kDirectories][4096];
  std::uint32_t directory;  // of these, the bundle's
  char fallback[4096];
  char working_directory[4096];
  char reason[256];
  char label[256];
  char lines[2048];
  bool reported;
  int error;

  // The bundles of process `process` by number, and whether the last attempt wrote one.
  int process;
  bool last_written;
  WrittenBundle written[kMostWritten];

  // Other work: a bundle's completion, the texts of an exception, the user's command.
  bundle::Completion completion;
  const char* texts_to;  // path of the bundle that they go to
  CommandSpace command;
  unsigned command_seconds;

  void (*task)(WriterState&) noexcept;
  bool in_place;

  // Number of the current task. A thread that wakes late may find the next thread's task here; its
  // own result is in `results`, by its ticket.
  std::uint32_t ticket;
  std::atomic<bundle::Result> results[kResults];
};

extern constinit WriterState* g_writer;

inline void set_result(WriterState& writer, bundle::Result result) noexcept {
  writer.results[writer.ticket % kResults].store(result, std::memory_order_release);
}
inline bundle::Result result_of(const WriterState& writer, std::uint32_t ticket) noexcept {
  return writer.results[ticket % kResults].load(std::memory_order_acquire);
}
inline std::uint32_t take_ticket(WriterState& writer) noexcept {
  ++writer.ticket;
  set_result(writer, bundle::Result::failed);
  return writer.ticket;
}

// from_process.cpp. Claims the helper with its state; nullptr: still busy at the deadline.
WriterState* claim_writer(InHook hook, std::uint64_t deadline_ns) noexcept;

// Starts the task in the helper, or runs it in place: the helper's pid, or minus an errno.
long run_task(WriterState&, void (*task)(WriterState&) noexcept,
              Fallback fallback = Fallback::in_place) noexcept;

// The path of bundle `number`. Empty: there is none.
std::string_view bundle_path(const WriterState&, std::uint64_t number, text::Text& path) noexcept;

// Reserves address space for the texts of an exception; copies them there. nullptr:
// no memory. `whole`: everything was usable.
void reserve_texts() noexcept;
const text::ExceptionTexts* keep_texts(const text::ExceptionTexts&, bool& whole) noexcept;

}  // namespace oomrec::helper
