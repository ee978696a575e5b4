#include "tools/bundles/redact/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "common/session/chunks.h"

namespace oomrec::tools::bundles {
namespace {

using session::Header;
using session::StringId;
using session::TableId;

class RecordingRedactor {
 public:
  RecordingRedactor(const recording::Recording& recording, const TextRedactor& redactor)
      : redactor_(redactor), view_(recording.view()), bytes_(used_bytes(view_), '\0') {}

  std::string take(const session::EndEvidence* end) {
    std::memcpy(bytes_.data(), static_cast<const void*>(&view_.header()), sizeof(Header));
    copy_tables();
    keep_header_strings();
    keep_names();
    number_labels();
    clear_header(end);
    clear_devices();
    return std::move(bytes_);
  }

 private:
  // A session file is sparse: it is far longer than its contents.
  static std::uint64_t used_bytes(const session::View& view) {
    const std::uint64_t used = std::max(view.header().used_bytes.load(), session::kHeaderBytes);
    return std::min(view.bytes().total, used);
  }

  const session::TableDirectory& directory(TableId id) const {
    return view_.header().tables[static_cast<std::size_t>(id)];
  }

  // Gaps between entries are not copied: they may contain stale data.
  void copy_tables() {
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(TableId::count_); ++i) {
      const auto id = static_cast<TableId>(i);
      if (id != TableId::strings) copy_table(id);
    }
    for (const auto& lane : session::entries<session::Lane>(view_, TableId::lanes)) {
      copy(lane.sums_offset, std::uint64_t{lane.sums} * sizeof(session::HolderSum));
      copy(lane.temporaries_offset, std::uint64_t{lane.sums} * sizeof(std::uint32_t));
    }
    for (const auto& page : session::entries<session::SidePage>(view_, TableId::side_pages)) {
      if (page.shift <= session::kLargestSideShift)
        copy(std::uint64_t{page.page} * session::kUnitBytes,
             (session::kSideSpanBytes >> page.shift) * sizeof(std::uint64_t));
    }
  }

  void copy_table(TableId id) {
    const std::uint32_t entry_bytes = directory(id).entry_bytes;
    std::uint64_t left = view_.count(id);
    for (std::uint32_t chunk = 0; chunk < session::kMaxChunks && left != 0; ++chunk) {
      const std::uint64_t entries = std::min(left, session::chunk_bytes(chunk) / entry_bytes);
      copy(directory(id).chunk_offsets[chunk], entries * entry_bytes);
      left -= entries;
    }
  }

  // Copies a range of the file, if both files contain it.
  void copy(std::uint64_t offset, std::uint64_t bytes) {
    const std::byte* const from = offset == 0 ? nullptr : view_.bytes().at(offset, bytes);
    if (from != nullptr && offset + bytes <= bytes_.size())
      std::memcpy(bytes_.data() + offset, from, bytes);
  }

  // Overwrites the string `id`, truncated to the space of the original.
  void store_string(StringId id, std::string_view text) {
    const std::string_view before = view_.string(id);
    if (before.empty()) return;
    const std::byte* const base = view_.bytes().at(0, 1);
    const auto at =
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(before.data()) - base);
    const std::size_t capacity = (before.size() + 3) / 4 * 4;
    if (at + capacity > bytes_.size()) return;
    const auto length = static_cast<std::uint32_t>(std::min(text.size(), capacity));
    std::memcpy(bytes_.data() + at - sizeof length, &length, sizeof length);
    std::memcpy(bytes_.data() + at, text.data(), length);
  }

  void keep_unchanged(StringId id) { store_string(id, view_.string(id)); }
  void keep_path(StringId id) { store_string(id, redactor_.path(view_.string(id))); }
  void keep_text(StringId id) { store_string(id, redactor_.text(view_.string(id))); }

  // Leaves out arguments, working directory, cgroup and dump directory.
  void keep_header_strings() {
    const Header& header = view_.header();
    keep_path(header.executable);
    keep_path(header.program);
    keep_text(header.off_reason);
    keep_text(header.heap_note);
    keep_text(header.allocator);
    keep_text(header.preexisting_objects);
    keep_text(header.python.status);
    for (const session::Driver& driver : header.drivers) keep_path(driver.path);
  }

  void keep_names() {
    for (const auto& module : session::entries<session::Module>(view_, TableId::modules))
      keep_path(module.path);
    for (const auto& code : session::entries<session::Code>(view_, TableId::codes)) {
      keep_path(code.file);
      keep_unchanged(code.name);
      keep_unchanged(code.line_table);
    }
    for (const auto& thread : session::entries<session::Thread>(view_, TableId::threads))
      keep_unchanged(thread.group);
    for (const auto& failure : session::entries<session::Failure>(view_, TableId::failures))
      keep_text(failure.rule);
    for (const auto& node : session::entries<session::Node>(view_, TableId::nodes)) {
      if (special_of(node, session::SpecialFrame::thread_group))
        keep_unchanged(session::argument_of(node.frame));
    }
  }

  // Labels are the user's own texts: replaces each distinct one by a number.
  void number_labels() {
    std::unordered_map<std::string_view, std::size_t> numbers;
    for (const auto& node : session::entries<session::Node>(view_, TableId::nodes)) {
      if (!special_of(node, session::SpecialFrame::context)) continue;
      const StringId id = session::argument_of(node.frame);
      const std::size_t number =
          numbers.try_emplace(view_.string(id), numbers.size() + 1).first->second;
      store_string(id, fmt::format("{}", number));
    }
  }

  static bool special_of(const session::Node& node, session::SpecialFrame what) {
    return session::kind_of(node.frame) == session::FrameKind::special &&
           session::special_of(node.frame) == what;
  }

  template <std::size_t N>
  void redact_field(char (&field)[N]) {
    const std::string text = redactor_.text({field, strnlen(field, N)});
    std::memset(field, 0, N);
    std::memcpy(field, text.data(), std::min(text.size(), N - 1));
  }

  void clear_header(const session::EndEvidence* end) {
    auto& header = *reinterpret_cast<Header*>(bytes_.data());
    header.file_bytes = bytes_.size();
    std::memset(header.host, 0, sizeof header.host);
    std::memset(header.boot_id, 0, sizeof header.boot_id);
    std::memset(header.alive_mutex, 0, sizeof header.alive_mutex);  // a copy has no living process
    if (end != nullptr) {
      header.death = end->death;
      header.end_levels = end->levels;
      header.account = end->account;
    }
    redact_field(header.death.kernel_line);
    redact_field(header.end_levels.user_killer_line);
    clear_largest(header.account);
    redact_field(header.child.where);
    redact_field(header.child.summary);
    redact_field(header.shared.path);
  }

  // Another program of the machine.
  static void clear_largest(session::CgroupAccount& account) {
    account.largest_bytes = 0;
    account.largest_pid = 0;
    account.largest_recorded = 0;
    std::memset(account.largest_name, 0, sizeof account.largest_name);
  }

  void clear_devices() {
    const std::uint32_t entry_bytes = directory(TableId::devices).entry_bytes;
    if (entry_bytes < sizeof(session::Device)) return;
    const session::Chunks shape{entry_bytes};
    for (std::uint64_t i = 1; i < view_.count(TableId::devices); ++i) {
      const session::Chunks::Slot slot = shape.locate(i);
      const std::uint64_t at = directory(TableId::devices).chunk_offsets[slot.chunk] + slot.byte;
      if (at + sizeof(session::Device) > bytes_.size()) continue;
      std::memset(bytes_.data() + at + offsetof(session::Device, uuid), 0,
                  sizeof(session::Device::uuid));
    }
  }

  const TextRedactor& redactor_;
  const session::View& view_;
  std::string bytes_;
};

}  // namespace

std::string redacted_recording(const recording::Recording& recording, const TextRedactor& redactor,
                               const session::EndEvidence* end) {
  return RecordingRedactor{recording, redactor}.take(end);
}

}  // namespace oomrec::tools::bundles
