// Another process' recording, read where it lies: what a row of processes.json says of it.
//
// By pread and never mapped: the writer works where there is no address space left. The file may be
// forged or torn, and is of another process that runs on: what it holds is checked as View does,
// and what is not there reads as absent. Only regular files of our own are opened.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "common/session/layout.h"

namespace oomrec::bundle {

class Glance {
 public:
  // `room`: kHeaderBytes, 8-byte aligned, in use as long as this is.
  Glance(int directory, const char* name, char* room) noexcept;
  ~Glance();
  Glance(const Glance&) = delete;
  Glance& operator=(const Glance&) = delete;

  bool is_session() const noexcept { return header_ != nullptr; }

  // What follows only where there is a session.
  const session::Header& header() const noexcept { return *header_; }

  // The last part of a path, as much of it as fits.
  std::string_view base_name(session::StringId path, std::span<char> buffer) const noexcept;

  // Usable bytes, summed over the lanes; of a process with very many, the published figure.
  std::uint64_t live_bytes(Space) const noexcept;

 private:
  bool is_ours() const noexcept;
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const noexcept;
  std::uint64_t offset_of(session::TableId, std::uint64_t index) const noexcept;  // 0: not there

  const int fd_;
  const session::Header* header_ = nullptr;
};

// Whether pids mean the same in both: one boot of one host, one pid namespace.
bool counts_pids_alike(const session::Header&, const session::Header&) noexcept;

// Whether the process of this header is in sight under its pid.
bool is_in_sight(const session::Header&) noexcept;

// Who wrote the session, the same in all bundles of one process: "8f3a…-4711-123456".
std::string_view process_key(const session::Header&, std::span<char> buffer) noexcept;

}  // namespace oomrec::bundle
