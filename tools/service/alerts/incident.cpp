#include "tools/service/alerts/incident.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <optional>

#include "common/verdict/kinds.h"
#include "tools/base/text.h"
#include "tools/bundles/signature/holders.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::service {
namespace {

constexpr std::size_t kMostCommandLine = 1000;

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Json brief(const Incident& incident) {
  return Json{{"time_utc", time_text(incident.realtime_ns)},
              {"program", printable(incident.program)},
              {"rank", parse_number<std::uint32_t>(incident.rank)},
              {"pid", incident.pid},
              {"text", incident.text},
              {"bundle", text_or_null(incident.bundle)},
              {"figures", incident.figures}};
}

// Who held the memory. Read once an alert is due: its other bundles may be many.
std::string signature_of(const Incident& incident) {
  if (incident.bundle.empty()) return {};
  try {
    return bundles::signature_of(
               bundles::open_recorded(incident.bundle, recording::CacheDirectory::of_user()))
        .key;
  } catch (const std::exception&) {
    return {};  // it is gone, or damaged
  }
}

}  // namespace

Json json_of(const Alert& alert) {
  const Incident& first = alert.first;
  const std::size_t others = alert.also.size() + alert.left_out;
  std::string text = first.text;
  if (others != 0) text += fmt::format(" (and {} more)", others);
  Json json{{"schema_version", 1},
            {"rule", kRuleNames[static_cast<std::size_t>(first.rule)]},
            {"host", text_or_null(host_name())},
            {"oomrec_version", OOMREC_VERSION}};
  json.update(brief(first));
  json["text"] = text;
  json["command_line"] = text_or_null(clip(printable(first.command_line), kMostCommandLine));
  json["signature"] = text_or_null(signature_of(first));
  json["also"] = Json::array();
  for (const Incident& incident : alert.also) json["also"].push_back(brief(incident));
  json["left_out"] = alert.left_out;
  return json;
}

namespace {

// The number in "exited 3" or "signal 9"; empty if the outcome is of another kind.
std::optional<int> number_after(std::string_view outcome, OutcomeKind kind) {
  const std::vector<std::string_view> words = split(outcome, ' ');
  const bool has_one = words.size() == 2 && words[0] == name_of(kind);
  return has_one ? parse_number<int>(words[1]) : std::nullopt;
}

std::string how(std::string_view outcome, VerdictCode verdict) {
  if (verdict::is_kernel_kill(verdict)) return "was killed by the kernel";
  if (const auto code = number_after(outcome, OutcomeKind::exited))
    return fmt::format("ended with exit code {}", *code);
  if (const auto signal = number_after(outcome, OutcomeKind::signal)) {
    const char* const name = sigabbrev_np(*signal);
    return name != nullptr ? fmt::format("was ended by SIG{}", name)
                           : fmt::format("was ended by signal {}", *signal);
  }
  return "is gone";
}

std::string_view why(VerdictCode verdict) {
  const std::string_view words = verdict::kind_of(verdict).end;
  return words.empty() ? " after memory was refused" : words;
}

}  // namespace

std::string end_text(std::string_view outcome, VerdictCode verdict,
                     std::optional<Certainty> certainty) {
  std::string text = how(outcome, verdict) + std::string{why(verdict)};
  if (certainty && *certainty != Certainty::proven)
    text += fmt::format(" ({}, not proven)", name_of(*certainty));
  return text;
}

}  // namespace oomrec::tools::service
