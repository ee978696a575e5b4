#include "tools/recording/reading/checkpoints.h"

#include <algorithm>

namespace oomrec::tools::recording {
namespace {

using session::TableId;

void sort_by_size(std::vector<CheckpointRow>& rows) {
  std::ranges::sort(rows, [](const CheckpointRow& a, const CheckpointRow& b) {
    return a.live_bytes != b.live_bytes ? a.live_bytes > b.live_bytes : a.holder < b.holder;
  });
}

// The checkpoint's rows, without those that a later checkpoint has already overwritten.
std::vector<CheckpointRow> rows_of(const Recording& recording, const session::Checkpoint& entry) {
  const session::View& view = recording.view();
  const std::uint64_t holders = view.count(TableId::holders);
  const std::uint64_t since_start = entry.time_ns - recording.header().start_monotonic_ns;
  const auto time_ms = static_cast<std::uint32_t>(since_start / 1'000'000);
  std::vector<CheckpointRow> rows;
  session::CheckpointRow row{};
  for (std::uint32_t i = 0; i < std::min(entry.rows, session::kCheckpointRows); ++i) {
    if (view.read(TableId::checkpoint_rows, std::uint64_t{entry.first_row} + i, row) &&
        row.time_ms == time_ms && row.holder != 0 && row.holder < holders)
      rows.push_back({row.holder, row.live_bytes});
  }
  sort_by_size(rows);
  return rows;
}

Checkpoint end_of(const Recording& recording) {
  Checkpoint end;
  end.time_ns = recording.end_ns();
  for (std::size_t i = 0; i < kSpaceCount; ++i)
    end.live_bytes[i] = recording.totals(static_cast<Space>(i)).live_bytes;
  for (const HolderFigures& row : recording.holders())
    if (static_cast<std::int64_t>(row.live_bytes) > 0 && !is_address_space(row.space))
      end.largest.push_back({row.entry, row.live_bytes});
  sort_by_size(end.largest);
  return end;
}

}  // namespace

std::vector<Checkpoint> checkpoints_of(const Recording& recording) {
  const session::View& view = recording.view();
  Checkpoint end = end_of(recording);
  std::vector<Checkpoint> checkpoints;
  session::Checkpoint entry{};
  for (std::uint64_t i = 1; i < view.count(TableId::checkpoints); ++i) {
    // A checkpoint of the last tick would duplicate the end.
    if (!view.read(TableId::checkpoints, i, entry) || entry.time_ns == 0 ||
        entry.time_ns >= end.time_ns) {
      continue;
    }
    Checkpoint checkpoint;
    checkpoint.time_ns = entry.time_ns;
    std::copy_n(entry.live_bytes, kSpaceCount, checkpoint.live_bytes.begin());
    checkpoint.largest = rows_of(recording, entry);
    // A running process may have reused the entry while its rows were read.
    if (view.read(TableId::checkpoints, i, entry) && entry.time_ns == checkpoint.time_ns)
      checkpoints.push_back(std::move(checkpoint));
  }
  std::ranges::sort(checkpoints, {}, &Checkpoint::time_ns);
  checkpoints.push_back(std::move(end));
  return checkpoints;
}

}  // namespace oomrec::tools::recording
