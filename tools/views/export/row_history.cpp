#include "tools/views/export/row_history.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <vector>

#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/signature.h"
#include "tools/findings/time_series/statistics.h"
#include "tools/views/export/format.h"
#include "tools/views/export/row.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kFewestOfShape = 8;  // moments of the second half

}  // namespace

RowHistory::RowHistory(const recording::Recording& recording, bool is_of_device)
    : is_of_device_(is_of_device) {
  const session::Header& header = recording.header();
  start_realtime_ns_ = header.start_realtime_ns;
  const std::uint64_t start = header.start_monotonic_ns;
  if (recording.end_ns() > start) end_realtime_ns_ = recording.realtime_of(recording.end_ns());
  for (const recording::Moment& moment : recording::timeline_of(recording).moments) {
    const std::uint64_t after = moment.time_ns > start ? moment.time_ns - start : 0;
    const std::uint64_t host_bytes = recording::host_bytes_of(moment);
    moments_.push_back({after / 1'000'000, moment.rss_bytes, host_bytes,
                        recording::held_bytes_of(moment) - host_bytes});
  }
}

double RowHistory::run_seconds() const {
  if (end_realtime_ns_ <= start_realtime_ns_ || start_realtime_ns_ == 0) return 0;
  return static_cast<double>(end_realtime_ns_ - start_realtime_ns_) / 1e9;
}

std::uint64_t RowHistory::most_resident_bytes() const {
  std::uint64_t most = 0;
  for (const Moment& moment : moments_) most = std::max(most, moment.resident_bytes);
  return most;
}

double RowHistory::lost_gib_hours() const {
  double byte_ms = 0;
  for (std::size_t i = 1; i < moments_.size(); ++i) {
    const double ms = static_cast<double>(moments_[i].ms) - static_cast<double>(moments_[i - 1].ms);
    byte_ms += (moments_[i].bytes() + moments_[i - 1].bytes()) / 2 * std::max(ms, 0.0);
  }
  constexpr double kGibHour = double{1 << 30} * 3'600'000;
  return byte_ms / kGibHour;
}

std::vector<RowHistory::Moment> RowHistory::second_half() const {
  if (moments_.empty()) return {};
  std::vector<Moment> half;
  for (const Moment& moment : moments_)
    if (moment.ms >= moments_.back().ms / 2) half.push_back(moment);
  return half;
}

std::optional<double> RowHistory::bytes_per_second() const {
  findings::Series series;
  for (const Moment& moment : second_half())
    series.add(static_cast<double>(moment.ms) / 1e3, shape_bytes(moment));
  constexpr std::size_t kFewest = 3;
  if (series.size() < kFewest) return std::nullopt;
  return findings::fit_of(series).slope;
}

// A leak rises all the time: by as much in the second half as one expects of a line, and it hardly
// ever falls. Anything else has a bound, and the last piece of work needed more than usual.
Growth RowHistory::growth() const {
  const std::vector<Moment> half = second_half();
  if (half.size() < kFewestOfShape) return Growth::unknown;
  findings::Series series;
  const double first = shape_bytes(half.front());
  const std::uint64_t middle = half.front().ms + (half.back().ms - half.front().ms) / 2;
  double highest = 0, by_middle = first, fallen = 0;
  for (const Moment& moment : half) {
    const double bytes = shape_bytes(moment);
    series.add(static_cast<double>(moment.ms) / 1e3, bytes);
    highest = std::max(highest, bytes);
    fallen = std::max(fallen, highest - bytes);
    if (moment.ms <= middle) by_middle = highest;
  }
  constexpr double kLine = 0.9, kRisen = 0.2, kFallen = 0.2, kStayed = 0.1, kLate = 0.2;
  const double risen = highest - first;
  const findings::Fit fit = findings::fit_of(series);
  if (fit.slope > 0 && fit.r_squared() >= kLine && risen >= kRisen * highest &&
      fallen < kFallen * highest)
    return Growth::steady;
  const bool rose_late = by_middle - first <= kLate * risen;
  const bool comes_and_goes = fallen >= kFallen * highest || fallen >= risen / 2;
  return comes_and_goes || rose_late || risen < kStayed * highest ? Growth::bounded
                                                                  : Growth::unknown;
}

void RowHistory::write_timeline(Json& row, std::size_t most) const {
  Json ms = Json::array(), resident = Json::array(), live = Json::array();
  const std::size_t count = std::min(most, moments_.size());
  for (std::size_t i = 0; i < count; ++i) {
    // Evenly from the first to the last.
    const std::size_t at =
        count == 1 ? moments_.size() - 1 : i * (moments_.size() - 1) / (count - 1);
    const Moment& moment = moments_[at];
    ms.push_back(moment.ms);
    resident.push_back(number_or_null(moment.resident_bytes));
    live.push_back(moment.live_bytes);
  }
  row["timeline_ms"] = std::move(ms);
  row["timeline_rss"] = std::move(resident);
  row["timeline_live"] = std::move(live);
}

namespace {

using bundles::Frames;
using bundles::Holder;

Frames frames_of(const Json& of) {
  Frames frames;
  for (const Json& each : member(of, "frames")) {
    const std::string kind = text_of(each, "kind").value_or("");
    bundles::Frame frame;
    frame.python = kind == "python";
    frame.script = frame.python || kind == "script";
    frame.own = member(each, "own") == Json(true);
    frame.function = text_of(each, "function").value_or("");
    frame.file = text_of(each, "file").value_or("");
    frame.module = text_of(each, "module").value_or("");
    frame.build_id = text_of(each, "build_id").value_or("");
    frame.offset = number_of(each, "offset").value_or(0);
    frames.push_back(bundles::with_key(std::move(frame)));
  }
  return frames;
}

Holder holder_of(const Json& of) {
  Holder holder;
  holder.bytes = number_of(of, "bytes").value_or(0);
  holder.resident_bytes = number_of(of, "resident_bytes");
  holder.frames = frames_of(of);
  return holder;
}

std::optional<bundles::Request> request_of(const Json& row) {
  const Json& request = member(row, "request");
  const auto size = number_of(request, "size");
  if (!size) return std::nullopt;
  return bundles::Request{*size, number_of(row, "limit_bytes").value_or(0), frames_of(request)};
}

void renew(Json& row) {
  std::vector<Holder> holders;
  for (const Json& each : member(row, "holders")) holders.push_back(holder_of(each));
  const bundles::Signature signature =
      bundles::signature_of(holders, request_of(row), text_of(row, "service").value_or(""));
  if (text_of(row, "signature_alias").value_or("").empty())
    row["signature_alias"] = Json(member(row, "signature"));
  const std::string cause = text_of(row, "cause").value_or("");
  const bool was_request = cause == "giant_request";
  write_signature(row, signature);
  row["cause"] = signature.is_request ? Json("giant_request")
                                      : text_or_null(was_request ? std::string{} : cause);
  Json renewed = Json::array();
  std::size_t i = 0;
  for (const Json& each : member(row, "holders")) {
    Json holder = each;
    holder["sig"] = text_or_null(bundles::path_key(holders[i++].frames));
    renewed.push_back(std::move(holder));
  }
  row["holders"] = std::move(renewed);
}

}  // namespace

std::string renewed_row(std::string_view line) try {
  Json row = parse_json(line);
  const auto version = number_of(row, "signature_version");
  if (!version || *version >= bundles::kSignatureVersion || text_of(row, "kind") == "life")
    return std::string{line};
  renew(row);
  return json_text(row);
} catch (const std::exception&) {
  return std::string{line};
}

}  // namespace oomrec::tools::views
