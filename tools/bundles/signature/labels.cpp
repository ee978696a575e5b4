#include "tools/bundles/signature/labels.h"

#include <algorithm>
#include <array>

#include "tools/base/number.h"
#include "tools/base/text.h"

namespace oomrec::tools::bundles {
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
  const Column* const column = std::find_if(std::begin(kColumns), std::end(kColumns),
                                            [&](const Column& c) { return c.name == name; });
  if (column == std::end(kColumns)) return {};
  for (const std::string_view label : column->labels) {
    const auto found = labels_.find(label);
    if (found != labels_.end()) return found->second;
  }
  return {};
}

Json Labels::others(std::size_t most) const {
  const auto has_column = [](std::string_view key) {
    return std::any_of(std::begin(kColumns), std::end(kColumns), [&](const Column& column) {
      return std::find(column.labels.begin(), column.labels.end(), key) != column.labels.end();
    });
  };
  Json others = Json::object();
  for (const auto& [key, value] : labels_)
    if (!has_column(key) && others.size() < most) others[key] = value;
  return others;
}

}  // namespace oomrec::tools::bundles
