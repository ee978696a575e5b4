// Reads from another process' recording what a row of processes.json needs.
//
// Uses pread and never maps the file: the writer may have no address space left. The file may be
// forged or torn, and its process may still be running. So everything is checked as View does, and
// missing parts read as absent. Opens only regular files of the same user.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/layout.h"

namespace oomrec::bundle {

class SessionSummary {
 public:
  // `buffer`: kHeaderBytes, 8-byte aligned, used until destruction.
  SessionSummary(int directory, const char* name, char* buffer) noexcept;
  ~SessionSummary();
  SessionSummary(const SessionSummary&) = delete;
  SessionSummary& operator=(const SessionSummary&) = delete;

  bool is_session() const noexcept { return header_ != nullptr; }

  // The rest requires is_session().
  const session::Header& header() const noexcept { return *header_; }

  // The last component of a path, cut to the buffer.
  std::string_view base_name(session::StringId path, std::span<char> buffer) const noexcept;

  // Live bytes summed over the lanes; for a process with very many lanes, the published figure.
  std::uint64_t live_bytes(Space) const noexcept;

 private:
  bool is_ours() const noexcept;
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const noexcept;
  std::uint64_t offset_of(session::TableId, std::uint64_t index) const noexcept;  // 0: absent

  const int fd_;
  const session::Header* header_ = nullptr;
};

// Whether pids mean the same in both: same boot, same host, same pid namespace.
bool have_comparable_pids(const session::Header&, const session::Header&) noexcept;

// Whether the calling process can see this process under its pid.
bool is_visible_by_pid(const session::Header&) noexcept;

// Identifies the process that wrote the session, in all its bundles: "8f3a…-4711-123456".
std::string_view process_key(const session::Header&, std::span<char> buffer) noexcept;
// The same for another process of that boot.
std::string_view process_key(const session::Header&, std::int32_t pid, std::uint64_t start_ticks,
                             std::span<char> buffer) noexcept;

}  // namespace oomrec::bundle
