// What the helper works at: all that it is given, in memory that is mapped and touched at start.
// Private to this folder.
//
// Whoever has claimed the helper (helper.h) may read and change it; while the helper works it
// alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/text/text.h"
#include "recorder/helper/command.h"
#include "recorder/helper/from_process.h"
#include "recorder/helper/helper.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::helper {

inline constexpr std::uint64_t kSecond = 1'000'000'000;
inline constexpr std::size_t kMostWritten = 32;  // a process writes fewer
inline constexpr std::size_t kDirectories = 4;   // that the program has named lately
inline constexpr std::size_t kResults = 64;

// Where a bundle is.
struct Written {
  std::uint64_t number;  // 0: there is none
  std::uint32_t directory;
  bool in_fallback;
  char name[64];
};

struct Desk {
  helper::Stack stack;
  bundle::Workspace work;
  alignas(8) std::byte window[64 * 1024];
  alignas(symbols::ElfSymbols) char symbols[sizeof(symbols::ElfSymbols)];
  std::uint64_t symbols_start;
  InHook hook;

  // A bundle to be written.
  session::View view;
  bundle::Cause cause;
  bundle::Destination destination;
  Report report;
  char directories[kDirectories][4096];
  std::uint32_t directory;  // of these, the bundle's
  char fallback[4096];
  char working_directory[4096];
  char reason[256];
  char label[256];
  char lines[2048];
  bool reported;
  int error;

  // What was written last, and where all of them are, by number: of process `process`.
  int process;
  bool last_written;
  Written written[kMostWritten];

  // Other work: a bundle's completion, the texts of an exception, the user's command.
  bundle::Completion completion;
  const char* texts_to;  // path of the bundle that gets them
  CommandSpace command;
  unsigned command_seconds;

  void (*errand)(Desk&) noexcept;
  bool in_place;

  // Which work this is. A thread that wakes late finds the desk with the next thread's: what became
  // of its own is in the place of its ticket.
  std::uint32_t ticket;
  std::atomic<bundle::Result> results[kResults];
};

extern constinit Desk* g_desk;

inline void set_result(Desk& desk, bundle::Result result) noexcept {
  desk.results[desk.ticket % kResults].store(result, std::memory_order_release);
}
inline bundle::Result result_of(const Desk& desk, std::uint32_t ticket) noexcept {
  return desk.results[ticket % kResults].load(std::memory_order_acquire);
}
inline std::uint32_t take_ticket(Desk& desk) noexcept {
  ++desk.ticket;
  set_result(desk, bundle::Result::failed);
  return desk.ticket;
}

// from_process.cpp. The desk, with nobody at it; nullptr: at the deadline somebody is.
Desk* claim_desk(InHook hook, std::uint64_t deadline_ns) noexcept;

// Has the errand done, by the helper or in place: the helper's pid, or minus an errno.
long run_errand(Desk&, void (*errand)(Desk&) noexcept, bool may_be_in_place = true) noexcept;

// The path of bundle `number`. Empty: there is none.
std::string_view place_of(const Desk&, std::uint64_t number, text::Text& path) noexcept;

// exception.cpp. Address space for the texts of an exception; of a cause, where the helper finds
// them (nullptr: nowhere), and whether it finds all of them.
void prepare_texts() noexcept;
const text::ExceptionTexts* keep_texts(const text::ExceptionTexts&, bool& whole) noexcept;

}  // namespace oomrec::helper
