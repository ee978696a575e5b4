// A recording made by the real writer, block by block, for tests of its readers.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/session/brief_holder.h"
#include "common/session/view.h"
#include "recorder/session/writer.h"
#include "tests/unit/append_node.h"
#include "tests/unit/scratch_directory.h"

namespace oomrec::tests {

class RecordingImage {
 public:
  RecordingImage() {
    session::Settings settings;
    settings.session_directory = directory_.path().c_str();
    REQUIRE(session_->create(kHook, settings));
    session_->header().state = static_cast<std::uint32_t>(session::State::running);
    session_->header().python.version_hex = 0x030b02f0;
  }
  ~RecordingImage() { session_->remove_file(kHook); }
  RecordingImage(const RecordingImage&) = delete;
  RecordingImage& operator=(const RecordingImage&) = delete;

  session::Session& session() { return *session_; }
  std::string path() const { return session_->path(); }

  // A Python frame at `line` of `function`: with an empty line table every instruction is on the
  // first line.
  std::uint64_t python(const char* file, const char* function, std::uint32_t line) {
    const session::StringId file_id = session_->add_string(kHook, file);
    const session::StringId name_id = session_->add_string(kHook, function);
    std::uint32_t code = 0;
    REQUIRE(session_->codes.append(kHook, code, [&](session::Code& row) {
      row = {file_id, name_id, line, 0};
    }));
    return session::python_frame(code, 0);
  }

  std::uint32_t module(const std::string& path, std::uint64_t base) {
    const session::StringId path_id = session_->add_string(kHook, path);
    std::uint32_t id = 0;
    REQUIRE(session_->modules.append(kHook, id, [&](session::Module& row) {
      row.base = base;
      row.path = path_id;
    }));
    return id;
  }

  // frames_of(path)(offset): a native frame of a module.
  auto frames_of(const std::string& path) {
    return [id = module(path, 0x1000)](std::uint64_t offset) {
      return session::native_frame(id, offset);
    };
  }

  // A stack from the outermost frame in; a new node for each, as from another thread.
  std::uint32_t stack(std::initializer_list<std::uint64_t> outermost_first) {
    std::uint32_t node = 0;
    add(node, session::special_frame(session::SpecialFrame::thread_group, 0));
    for (const std::uint64_t frame : outermost_first) add(node, frame);
    return node;
  }

  // What a stack holds, held at the peak and allocated ever, in bytes; a count of 1 per 100 bytes.
  void holder(std::uint32_t node, Space space, std::uint64_t live, std::uint64_t peak,
              std::uint64_t total) {
    std::uint32_t index = 0;
    REQUIRE(session_->full_holders.append(kHook, index, [&](session::Holder& row) {
      row.live_bytes = live;
      row.live_count = live / 100;
      row.peak_bytes = peak;
      row.peak_count = peak / 100;
      row.total_bytes = total;
      row.total_count = total / 100;
      row.peak_epoch = session_->header().spaces[static_cast<std::size_t>(space)].peak_epoch.load();
    }));
    REQUIRE(session_->holders.append(kHook, index, [&](session::HolderEntry& row) {
      row.node = node;
      row.space = static_cast<std::uint8_t>(space);
      row.figures = session::kFullHolder | index;
    }));
  }

  // A look at the process' pages. The rows' nodes are those of their holders.
  void look(std::vector<session::ResidencyRow> rows) {
    for (session::ResidencyRow& row : rows) row.node = session_->holders.at(row.holder).node;
    auto& table = session_->residency;
    REQUIRE(session_->open_residency(kHook));
    session::Residency found{};
    found.time_ns = 1;
    found.row_count = static_cast<session::u32>(rows.size());
    for (const session::ResidencyRow& row : rows) found.untouched_bytes += row.untouched_bytes;
    std::uint32_t entry = 0;
    REQUIRE(table.append(kHook, entry, [&](session::ResidencyPage& page) {
      auto* const to = reinterpret_cast<std::byte*>(&page);
      std::memcpy(to, &found, sizeof found);
      std::memcpy(to + sizeof found, rows.data(), rows.size() * sizeof rows[0]);
    }));
    session_->header().latest_look = entry;
  }

  static inline const InHook kHook = OutsideHooks::in_hook();

 private:
  void add(std::uint32_t& node, std::uint64_t frame) {
    const std::uint32_t parent = node;
    REQUIRE(append_node(*session_, node, parent, frame));
  }

  ScratchDirectory directory_;
  std::unique_ptr<session::Session> session_ = std::make_unique<session::Session>();
};

}  // namespace oomrec::tests
