// What of a recording's memory is resident: looks at the pages of its process, and what the memory
// that was used since the last one is a part of; and the requests that were under way.
#include <algorithm>
#include <csignal>
#include <future>
#include <limits>
#include <new>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "common/limits/health.h"
#include "common/residency/residency.h"
#include "common/residency/rows.h"
#include "common/session/chunks.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::recording {
namespace {

using session::TableId;

// The chunks of the table of looks that hold entry 0 and one look.
constexpr std::uint32_t kLookChunks = [] {
  const session::Chunks chunks{sizeof(session::ResidencyPage)};
  std::uint32_t count = 0;
  while (chunks.first(count) < 1 + session::kResidencyPages) ++count;
  return count;
}();
constexpr std::uint64_t kLookTableBytes = [] {
  std::uint64_t bytes = 0;
  for (std::uint32_t chunk = 0; chunk < kLookChunks; ++chunk) bytes += session::chunk_bytes(chunk);
  return bytes;
}();
constexpr std::uint64_t kMostLookBytes = 2 * kLookTableBytes;  // it may not cross a segment

HolderFigures* row_of(const RequestInFlight& request, std::vector<HolderFigures>& rows) {
  const auto at = std::ranges::find_if(rows, [&](const HolderFigures& row) {
    return row.node == request.node && row.space == request.space;
  });
  return at != rows.end() ? &*at : nullptr;
}

std::unique_ptr<residency::Look> look_of(pid_t pid, const session::View& view) {
  constexpr std::uint64_t kMostNs = 1'000'000'000;
  std::vector<residency::Piece> pieces(residency::pieces_of(view));
  std::vector<char> text(64 * 1024);
  std::vector<std::uint64_t> blocks(4096);
  auto look = std::make_unique<residency::Look>();
  residency::look_at(OutsideHooks::in_hook(), pid, view, {pieces, text, blocks},
                     residency::Deadline{kMostNs}, *look);
  return look->found.time_ns != 0 ? std::move(look) : nullptr;
}

}  // namespace

std::uint64_t Recording::most_look_bytes() { return kMostLookBytes; }

void Recording::enter_look(pid_t pid) {
  if (may_enter_look()) enter(look_of(pid, view_));
}

// A read of smaps waits while the process changes its mappings, which itself may wait for memory.
// The thread that does not return in time is left behind.
void Recording::enter_look_within(pid_t pid, std::chrono::milliseconds most) {
  if (!may_enter_look()) return;
  auto result = std::make_shared<std::promise<std::unique_ptr<residency::Look>>>();
  std::future<std::unique_ptr<residency::Look>> found = result->get_future();
  // Signals must reach the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread{[result, pid, view = view_, bytes = bytes_] {
      try {
        result->set_value(look_of(pid, view));
      } catch (const std::bad_alloc&) {
        result->set_value(nullptr);
      }
    }}.detach();
  } catch (const std::system_error&) {
    result->set_value(nullptr);  // no thread could be started
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (found.wait_for(most) == std::future_status::ready) enter(found.get());
}

bool Recording::may_enter_look() const {
  return copy_ != nullptr && view_.format() >= session::kVersion;
}

void Recording::enter(std::unique_ptr<residency::Look> look) {
  const session::Residency* const before = view_.residency();
  if (look == nullptr || (before != nullptr && residency::is_worse(look->found, *before))) return;
  std::uint64_t end = (view_.bytes().total + 7) & ~std::uint64_t{7};
  if (end / session::kSegmentBytes != (end + kLookTableBytes - 1) / session::kSegmentBytes)
    end = (end / session::kSegmentBytes + 1) * session::kSegmentBytes;
  if (end + kLookTableBytes > std::min(view_.bytes().total + kMostLookBytes, session::kMostBytes))
    return;
  // A table of its own: the looks of the process are no longer reached.
  auto& header = *reinterpret_cast<session::Header*>(copy_);
  session::TableDirectory& table = header.tables[static_cast<std::size_t>(TableId::residency)];
  table.entry_bytes = sizeof(session::ResidencyPage);
  for (std::uint32_t chunk = 0; chunk < session::kMaxChunks; ++chunk) {
    table.chunk_offsets[chunk] = chunk < kLookChunks ? end : 0;
    if (chunk < kLookChunks) end += session::chunk_bytes(chunk);
  }
  table.committed = 1 + session::kResidencyPages;
  constexpr session::Chunks kChunks{sizeof(session::ResidencyPage)};
  const auto* const from = reinterpret_cast<const std::byte*>(look.get());
  for (std::uint32_t page = 0; page < session::kResidencyPages; ++page) {
    const session::Chunks::Slot slot = kChunks.locate(1 + page);
    std::memcpy(copy_ + table.chunk_offsets[slot.chunk] + slot.byte,
                from + page * sizeof(session::ResidencyPage), sizeof(session::ResidencyPage));
  }
  header.latest_look = 1;
  header.file_bytes = end;
  open_view(end);
}

void Recording::look_at_pages(pid_t pid) {
  const auto look = look_of(pid, view_);
  if (look == nullptr) return;
  set_residency(look->found, {look->rows, look->rows + look->found.row_count});
  weight_ = weight_by_limits();
}

Weight Recording::weight_by_limits() const {
  constexpr unsigned kNearPercent = 50;
  if (header().soft_limit_bytes == 0 && header().limit_as_bytes == 0) return Weight::resident;
  const unsigned killing = limit::usage_of_killing_limit(header().health).percent();
  const unsigned failing =
      limit::usage_of_failing_limit(header().health, header().soft_limit_bytes).percent();
  return killing >= kNearPercent && killing > failing ? Weight::resident : Weight::requested;
}

void Recording::note_resident_later(std::uint64_t bytes, std::uint64_t most_bytes) {
  constexpr std::uint64_t kNotablePart = 8;  // less may as well be what allocators add to blocks
  const std::uint64_t live = totals(Space::heap).live_bytes + totals(Space::map).live_bytes;
  std::uint64_t obtained = live - std::min(live, residency_.live_bytes);
  if (live != 0)  // the headers of its blocks: the same part of all as of the live bytes
    obtained +=
        static_cast<std::uint64_t>(static_cast<double>(residency::header_bytes(view_)) *
                                   static_cast<double>(obtained) / static_cast<double>(live));
  for (const RequestInFlight& request : in_flight_) obtained += request.bytes;
  const std::uint64_t expected = residency_.touched_bytes + obtained;
  const std::uint64_t nobodys = credit(bytes - std::min(bytes, expected));
  const bool is_recorded = header().off_reason == 0;
  if (is_recorded && header().account.is_own_at_kill() && nobodys >= bytes / kNotablePart)
    unexplained_bytes_ = nobodys;
  // Without a look, what was touched of older memory is not known.
  const std::uint64_t bound = has_residency() ? bytes : most_bytes;
  if (bound != 0) debit(std::min(expected - std::min(bound, expected), obtained), bound);
  sort_rows();
}

void Recording::set_killed() {
  in_flight_.clear();
  view_.for_each_in_flight([&](const session::InFlight& request, std::uint32_t thread) {
    if (request.api >= kApiCount || request.space >= kSpaceCount) return;
    in_flight_.push_back({static_cast<Api>(request.api), static_cast<Space>(request.space),
                          request.bytes, 0, request.node, thread, request.replaced_bytes,
                          request.replaced_holder});
  });
  std::ranges::sort(in_flight_, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
}

void Recording::add_in_flight(std::vector<HolderFigures>& rows) const {
  for (const RequestInFlight& request : in_flight_) {
    for (HolderFigures& row : rows) {
      if (row.entry != request.replaced_holder || request.replaced_bytes == 0) continue;
      row.live_bytes += request.replaced_bytes;
      ++row.live_count;
    }
    if (HolderFigures* const same = row_of(request, rows)) {
      same->live_bytes += request.bytes;
      ++same->live_count;
      continue;
    }
    HolderFigures row;
    row.node = request.node;
    row.space = request.space;
    row.api = request.api;
    row.live_bytes = request.bytes;
    row.live_count = 1;
    rows.insert(rows.begin(), row);  // in order of their entries, of which it has none
  }
}

// A program touches memory without a call: so many bytes more than the look and later requests
// explain. They are taken to be, in this order, of memory that was new at the look and is being
// filled, of reservations and files, which are touched bit by bit, and of older memory. Returns
// what is left: nothing on record has room for it.
std::uint64_t Recording::credit(std::uint64_t bytes) {
  constexpr std::uint32_t kNew_s = 2;
  const std::uint32_t look_s = seconds_of_look();
  std::uint64_t credited =
      residency::credit(residency_rows_, bytes, look_s - std::min(look_s, kNew_s));
  residency_.untouched_bytes -= std::min(residency_.untouched_bytes, credited);
  bytes -= credited;
  bytes -= credit_once_touched(bytes);
  credited = residency::credit(residency_rows_, bytes, 0);
  residency_.untouched_bytes -= std::min(residency_.untouched_bytes, credited);
  return bytes - credited;
}

// Those that are the most in use first, then the largest, as far as there is room in them.
std::uint64_t Recording::credit_once_touched(std::uint64_t bytes) {
  std::unordered_map<std::uint32_t, std::uint64_t> room;  // by holder
  std::unordered_set<std::uint32_t> of_files;
  session::LiveRange range{};
  for (std::uint64_t i = 1; bytes != 0 && i < view_.count(TableId::live_ranges); ++i)
    if (view_.read(TableId::live_ranges, i, range) && range.start != 0 && range.holder != 0 &&
        range.kind != static_cast<std::uint32_t>(session::RangeKind::counted)) {
      room[range.holder] += range.bytes;
      if (range.kind != static_cast<std::uint32_t>(session::RangeKind::reservation))
        of_files.insert(range.holder);
    }
  std::unordered_set<std::uint32_t> with_row;
  for (const session::ResidencyRow& row : residency_rows_) with_row.insert(row.holder);
  for (const auto& [holder, most] : room)
    if (with_row.insert(holder).second) residency_rows_.push_back({holder, 0, 0, 0, 0, 0});
  view_.divide_growth(0, [&](std::uint32_t holder, std::uint64_t) {
    if (with_row.insert(holder).second) residency_rows_.push_back({holder, 0, 0, 0, 0, 0});
  });
  std::vector<std::pair<session::ResidencyRow*, std::uint64_t>> once_touched;
  for (session::ResidencyRow& row : residency_rows_)
    if (const auto found = room.find(row.holder); found != room.end())
      once_touched.emplace_back(&row, found->second - std::min(found->second, row.reserved_bytes));
  std::ranges::sort(once_touched, [](const auto& a, const auto& b) {
    return std::tuple{a.first->reserved_bytes, a.second, a.first->holder} >
           std::tuple{b.first->reserved_bytes, b.second, b.first->holder};
  });
  std::uint64_t credited = 0;
  for (const auto& [row, most] : once_touched) {
    const std::uint64_t part = std::min(most, bytes - credited);
    if (of_files.contains(row->holder) || !credit_growers(*row, part))
      latest_grower(*row).reserved_bytes += part;
    credited += part;
  }
  return credited;
}

// Those whose stacks ran since the look, all of which have rows. False: nobody is known.
bool Recording::credit_growers(const session::ResidencyRow& reserving, std::uint64_t bytes) {
  return view_.divide_growth(bytes, [&](std::uint32_t holder, std::uint64_t part) {
    for (session::ResidencyRow& row : residency_rows_) {
      if (row.holder != holder) continue;
      row.reserved_bytes += part;
      if (holder != reserving.holder) row.reserving = reserving.holder;
      break;
    }
  });
}

// The row of whoever made the reservations of a holder grow lately; its own if that is not known.
session::ResidencyRow& Recording::latest_grower(session::ResidencyRow& reserving) {
  session::ResidencyRow* latest = &reserving;
  for (session::ResidencyRow& row : residency_rows_)
    if (row.reserving == reserving.holder && row.holder != reserving.holder &&
        (latest == &reserving || row.birth_s >= latest->birth_s))
      latest = &row;
  return *latest;
}

std::uint32_t Recording::seconds_of_look() const {
  const std::uint64_t since =
      residency_.time_ns - std::min(residency_.time_ns, header().start_monotonic_ns);
  return static_cast<std::uint32_t>(since / 1'000'000'000);
}

// What each holder has that is taken to be resident.
Recording::HolderBytes Recording::resident_holders() {
  sort_rows();
  HolderBytes resident;
  const std::uint64_t header = residency::block_header_bytes(view_);
  for (const HolderFigures& row : holders()) {
    const std::uint64_t bytes = resident_of(
        row.entry, row.live_bytes + residency::header_bytes_of(header, row.space, row.live_count));
    if (is_on_host(row.space) && row.entry != 0 && bytes != 0) resident[row.entry] = bytes;
  }
  return resident;
}

// Of what was obtained since the look, so much cannot have been resident: the largest mappings and
// blocks of that time are taken not to have been touched yet. Without a look, first those that
// alone are larger than all that was resident, then the newest. Births are seconds: what the look
// has seen as untouched already is not debited again.
void Recording::debit(std::uint64_t bytes, std::uint64_t resident_bytes) {
  if (bytes < session::kLookBytes) return;
  const std::uint32_t look_s = seconds_of_look();
  constexpr std::uint32_t kNow_s = std::numeric_limits<std::uint32_t>::max();
  struct Obtained {
    std::uint64_t bytes;
    std::uint32_t holder;
    std::uint32_t birth_s;
    RequestInFlight* in_flight = nullptr;  // instead of a holder
  };
  std::vector<Obtained> since;
  for (RequestInFlight& request : in_flight_) since.push_back({request.bytes, 0, kNow_s, &request});
  for (const auto& range : session::entries<session::LiveRange>(view_, TableId::live_ranges))
    if (range.start != 0 && range.holder != 0 && range.birth_s >= look_s &&
        range.kind == static_cast<std::uint32_t>(session::RangeKind::counted))
      since.push_back({range.bytes, range.holder, range.birth_s});
  for (const auto& block : session::entries<session::LiveBlock>(view_, TableId::live_blocks))
    if (block.address != 0 && block.weight == 1 && block.bytes >= session::kLookBytes &&
        block.birth_s >= look_s)
      since.push_back({block.bytes, block.holder, block.birth_s});
  const auto rank = [&](const Obtained& one) {
    const bool is_new_only = !has_residency() && one.bytes <= resident_bytes;
    return std::tuple{is_new_only ? one.birth_s : kNow_s, one.bytes};
  };
  std::ranges::sort(since, [&](const Obtained& a, const Obtained& b) { return rank(a) > rank(b); });
  HolderBytes resident = resident_holders();
  for (const Obtained& one : since) {
    const std::uint64_t part =
        std::min({one.bytes, bytes, one.in_flight != nullptr ? one.bytes : resident[one.holder]});
    bytes -= part;
    if (one.in_flight != nullptr) {
      one.in_flight->untouched_bytes = part;
    } else if (part != 0) {
      resident[one.holder] -= part;
      count_untouched(one.holder, part);
    }
  }
  if (!has_residency() && bytes >= session::kLookBytes) debit_evenly(bytes);
}

void Recording::count_untouched(std::uint32_t holder, std::uint64_t bytes) {
  residency_.untouched_bytes += bytes;
  const auto at =
      std::ranges::find_if(residency_rows_, [&](const auto& row) { return row.holder == holder; });
  if (at != residency_rows_.end())
    at->untouched_bytes += bytes;
  else
    residency_rows_.push_back({holder, 0, bytes, 0, 0, 0});
}

// What small blocks must have left untouched, too: each holder the same part of what it still has.
void Recording::debit_evenly(std::uint64_t bytes) {
  const HolderBytes left = resident_holders();
  std::uint64_t sum = 0;
  for (const auto& [holder, resident] : left) sum += resident;
  for (const auto& [holder, resident] : left)
    count_untouched(holder, static_cast<std::uint64_t>(static_cast<double>(resident) *
                                                       static_cast<double>(std::min(bytes, sum)) /
                                                       static_cast<double>(sum)));
}

std::uint64_t Recording::resident_of(std::uint32_t holder, std::uint64_t live_bytes) const {
  const session::ResidencyRow* const row = residency::row_of(residency_rows_, holder);
  return row != nullptr ? residency::resident_by(*row, live_bytes) : live_bytes;
}

std::uint64_t Recording::weight_of(std::uint32_t holder, std::uint64_t live_bytes) const {
  const std::uint64_t resident = resident_of(holder, live_bytes);
  return weight_ == Weight::resident || resident > live_bytes ? resident : live_bytes;
}

bool Recording::has_untouched_in_flight() const {
  return std::ranges::any_of(
      in_flight_, [](const RequestInFlight& request) { return request.untouched_bytes != 0; });
}

// Holders without a row are wholly touched, as far as the look knows. Where they weigh what is
// resident, the headers of their blocks are, too.
void Recording::add_residency(std::vector<HolderFigures>& rows) const {
  if (!has_residency() && weight_ != Weight::resident) return;
  const std::uint64_t header =
      weight_ == Weight::resident ? residency::block_header_bytes(view_) : 0;
  for (HolderFigures& row : rows) {
    const std::uint64_t taken =
        row.live_bytes + residency::header_bytes_of(header, row.space, row.live_count);
    row.resident_bytes = resident_of(row.entry, taken);
    row.weighs_resident = weight_ == Weight::resident;
    row.estimated = row.estimated || (is_resident_estimated() && *row.resident_bytes != taken);
  }
  for (const RequestInFlight& request : in_flight_)
    if (HolderFigures* const row = row_of(request, rows))
      *row->resident_bytes -= std::min(*row->resident_bytes, request.untouched_bytes);
}

}  // namespace oomrec::tools::recording
