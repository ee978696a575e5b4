#include "tools/bundles/signature/signature.h"

#include <algorithm>
#include <array>

#include "tools/base/text.h"

namespace oomrec::tools::bundles {
namespace {

constexpr double kLeastShare = 0.25;
constexpr std::size_t kMostAlso = 2;

// Of a forged recording, whole numbers would overflow.
struct Sum {
  std::string key;
  double bytes = 0, request_bytes = 0;
  const Frames* frames = nullptr;  // of the largest
  double largest = 0;
};

// Largest first; what has no path is left out.
class Sums {
 public:
  explicit Sums(std::size_t frames) : frames_(frames) {}

  void add(const Frames& frames, double bytes, bool is_request) {
    std::string key = path_key(frames, frames_);
    if (key.empty()) return;
    auto at = std::ranges::find(sums_, key, &Sum::key);
    if (at == sums_.end()) at = sums_.insert(at, Sum{std::move(key)});
    at->bytes += bytes;
    if (is_request) at->request_bytes = bytes;
    if (at->frames == nullptr || bytes > at->largest) {
      at->frames = &frames;
      at->largest = bytes;
    }
  }

  const std::vector<Sum>& sorted() {
    std::ranges::stable_sort(sums_, [](const Sum& a, const Sum& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.key < b.key;
    });
    return sums_;
  }

 private:
  std::size_t frames_;
  std::vector<Sum> sums_;
};

}  // namespace

Signature signature_of(const std::vector<Holder>& holders, const std::optional<Request>& request,
                       std::string_view service) {
  Sums paths{kPathFrames}, coarse{1};
  double whole = 0;
  const auto add = [&](const Frames& frames, double bytes, bool is_request) {
    whole += bytes;
    paths.add(frames, bytes, is_request);
    coarse.add(frames, bytes, is_request);
  };
  for (const Holder& holder : holders)
    add(holder.frames, static_cast<double>(holder.weight()), false);
  if (request && request->is_giant())
    add(request->frames, static_cast<double>(request->bytes), true);

  Signature signature;
  const std::vector<Sum>& sums = paths.sorted();
  if (whole == 0) return signature;
  if (!sums.empty()) signature.top_share = std::min(sums.front().bytes / whole, 1.0);
  const bool is_spread = signature.top_share < kLeastShare;
  for (std::size_t i = is_spread ? 0 : 1; i < sums.size() && signature.also.size() < kMostAlso; ++i)
    signature.also.push_back(sums[i].key);
  if (is_spread) {
    signature.key = service.empty() ? "spread" : "spread:" + std::string{service};
    signature.coarse = signature.key;
    signature.title = "spread: no code held a quarter of the memory";
  } else {
    const Sum& top = sums.front();
    signature.key = top.key;
    signature.coarse = coarse.sorted().front().key;
    signature.title = path_title(*top.frames);
    // An array that has grown to a third of what it asks for has grown, and is no single request.
    signature.is_request = top.request_bytes > top.bytes * 3 / 4;
  }
  return signature;
}

namespace {

constexpr std::size_t kMostKeyBytes = 64;
constexpr std::size_t kMostValueBytes = 128;

struct Column {
  std::string_view name;
  std::array<std::string_view, 3> labels;  // in order of precedence
};
constexpr Column kColumns[] = {
    {"service", {"service.name", "service"}},
    {"release", {"service.version", "release"}},
    {"namespace", {"k8s.namespace.name", "namespace", "service.namespace"}},
    {"pod", {"k8s.pod.name", "pod"}},
    {"container", {"k8s.container.name", "container.name", "container"}},
    {"image", {"container.image.name", "image"}},
    {"host", {"host.name", "host"}},
    {"job", {"job", "k8s.job.name", "k8s.cronjob.name"}},
    {"task", {"task"}},
    {"attempt", {"attempt", "k8s.container.restart_count"}},
};

// "%20" → " ", as in OTEL_RESOURCE_ATTRIBUTES.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = text[i] == '%' && i + 2 < text.size()
                          ? parse_number<std::uint8_t>(text.substr(i + 1, 2), 16)
                          : std::nullopt;
    decoded += byte ? static_cast<char>(*byte) : text[i];
    if (byte) i += 2;
  }
  return decoded;
}

}  // namespace

Labels::Labels(const Source& source) {
  const recording::Recording& recording = *source.recording;
  const std::string text = recording.text(recording.header().rank.process_labels);
  if (text.empty()) return;
  for (const std::string_view label : split(text, '\0')) {
    const std::size_t equals = label.find('=');
    if (equals == label.npos) continue;
    labels_.try_emplace(
        printable_prefix(label.substr(0, equals), kMostKeyBytes),
        printable_prefix(percent_decoded(label.substr(equals + 1)), kMostValueBytes));
  }
}

std::string Labels::column(std::string_view name) const {
  const Column* const column = std::ranges::find(kColumns, name, &Column::name);
  if (column == std::end(kColumns)) return {};
  for (const std::string_view label : column->labels) {
    const auto found = labels_.find(label);
    if (found != labels_.end()) return found->second;
  }
  return {};
}

Json Labels::others(std::size_t most) const {
  const auto has_column = [](std::string_view key) {
    return std::ranges::any_of(kColumns, [&](const Column& column) {
      return std::ranges::find(column.labels, key) != column.labels.end();
    });
  };
  Json others = Json::object();
  for (const auto& [key, value] : labels_)
    if (!has_column(key) && others.size() < most) others[key] = value;
  return others;
}

}  // namespace oomrec::tools::bundles
