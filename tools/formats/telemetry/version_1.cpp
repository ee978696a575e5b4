#include "tools/formats/telemetry/version_1.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace oomrec::tools::formats {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kNs = 1e9;
constexpr double kMost = 9e18;  // below the largest integer

std::optional<std::int64_t> whole(std::optional<double> value, double times = 1) {
  if (!value || !std::isfinite(*value) || std::fabs(*value * times) > kMost) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(*value * times));
}

// Bytes are not below 0: what is, is not known.
std::optional<std::int64_t> bytes_in(const Json& record,
                                     std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const auto bytes = whole(number_in(record, key), key.ends_with("_mb") ? kMiB : 1);
    if (bytes && *bytes >= 0) return bytes;
  }
  return std::nullopt;
}

// 0, "0", "cuda:0", "/GPU:0"; −1 of "cpu" and of what is not understood.
std::int64_t device_in(const Json& record) {
  for (const std::string_view key : {"device_id", "device", "gpu_id"}) {
    if (const auto number = whole(number_in(record, key)))
      return std::max<std::int64_t>(-1, *number);
    const std::string text = text_of(record, key).value_or("");
    const std::size_t colon = text.rfind(':');
    std::int64_t ordinal = 0;
    if (colon != text.npos && colon + 1 < text.size() &&
        std::from_chars(text.data() + colon + 1, text.data() + text.size(), ordinal).ptr ==
            text.data() + text.size() &&
        !text.starts_with("cpu") && ordinal >= 0)
      return ordinal;
  }
  return -1;
}

std::optional<std::string> first_text(const Json& record,
                                      std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (auto text = text_of(record, key); text && !text->empty()) return text;
  return std::nullopt;
}

}  // namespace

std::optional<double> number_in(const Json& record, std::string_view key) {
  const Json& value = member(record, key);
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc{} && end == text.data() + text.size() && !text.empty();
  return is_number ? std::optional{number} : std::nullopt;
}

TelemetryEvent event_of_version_1(const Json& record) {
  TelemetryEvent event;
  auto time_ns = whole(number_in(record, "timestamp_ns"));
  if (!time_ns) time_ns = whole(number_in(record, "timestamp"), kNs);
  if (!time_ns || *time_ns < 0) throw std::invalid_argument{"timestamp is missing, or no time"};
  event.timestamp_ns = *time_ns;
  event.event_type = first_text(record, {"event_type", "type"}).value_or("sample");
  event.collector = first_text(record, {"collector"}).value_or("legacy");
  event.host = first_text(record, {"host"}).value_or("unknown");
  event.pid = std::max<std::int64_t>(-1, whole(number_in(record, "pid")).value_or(-1));
  event.device_id = device_in(record);
  event.allocated_bytes = bytes_in(record, {"allocator_allocated_bytes", "memory_allocated",
                                            "allocated", "memory_used_mb", "memory_mb"})
                              .value_or(0);
  event.reserved_bytes =
      bytes_in(record, {"allocator_reserved_bytes", "memory_reserved", "reserved"})
          .value_or(event.allocated_bytes);
  event.active_bytes = bytes_in(record, {"active_memory"});
  event.inactive_bytes = bytes_in(record, {"inactive_memory"});
  event.change_bytes = whole(number_in(record, "memory_change")).value_or(0);
  event.used_bytes = bytes_in(record, {"device_used"}).value_or(event.allocated_bytes);
  event.free_bytes = bytes_in(record, {"device_free"});
  event.total_bytes = bytes_in(record, {"device_total", "memory_total_mb"});
  event.context = first_text(record, {"context"});
  if (const Json& metadata = member(record, "metadata"); metadata.is_object())
    event.metadata = metadata;
  constexpr std::string_view kPrefix = "metadata_";
  for (const auto& [key, value] : record.items())
    if (key.starts_with(kPrefix)) event.metadata[key.substr(kPrefix.size())] = value;
  // A total that is less than what is used was of something else.
  if (!contradiction(event).empty()) event.total_bytes = event.free_bytes = std::nullopt;
  return event;
}

}  // namespace oomrec::tools::formats
