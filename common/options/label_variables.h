// The variables from which a recording takes the labels of its process: where it ran, for which
// service, job and release. docs/commands/export.md shows them to users.
//
// Users send bundles to other people, so of OTEL_RESOURCE_ATTRIBUTES only attributes that name a
// place or a release are kept. OOMREC_LABELS is set for this alone, so all its labels are kept.
#pragma once

#include <algorithm>
#include <string_view>

namespace oomrec {

// A variable whose value is one label. Of two with one label the first one that is set counts.
struct LabelVariable {
  std::string_view variable, label;
};
inline constexpr LabelVariable kLabelVariables[] = {
    {"POD_NAME", "k8s.pod.name"},
    {"POD_NAMESPACE", "k8s.namespace.name"},
    {"SLURM_RESTART_COUNT", "attempt"},
    {"TORCHELASTIC_RESTART_COUNT", "attempt"},
    {"RAY_JOB_ID", "job"},
    {"AIRFLOW_CTX_DAG_ID", "job"},
    {"AIRFLOW_CTX_TASK_ID", "task"},
    {"AIRFLOW_CTX_TRY_NUMBER", "attempt"},
    {"FLYTE_ATTEMPT_NUMBER", "attempt"},
};

// The labels whose variable is a list, "key=value,key=value".
inline constexpr std::string_view kServiceVariable = "OTEL_SERVICE_NAME";  // label service.name
inline constexpr std::string_view kAttributesVariable = "OTEL_RESOURCE_ATTRIBUTES";
inline constexpr std::string_view kLabelsVariable = "OOMREC_LABELS";

// Attributes of OTEL_RESOURCE_ATTRIBUTES that are kept. A trailing * matches any ending.
inline constexpr std::string_view kListedAttributes[] = {
    "service.name", "service.namespace", "service.version", "deployment.*",
    "k8s.*",        "container.*",       "host.name",
};
constexpr bool is_listed_attribute(std::string_view name) noexcept {
  // Commands, annotations and labels of Kubernetes may hold anything.
  constexpr std::string_view kAnything[] = {"command", ".annotation.", ".label."};
  const auto matches = [name](std::string_view listed) {
    return listed.ends_with('*') ? name.starts_with(listed.substr(0, listed.size() - 1))
                                 : name == listed;
  };
  const auto has = [name](std::string_view word) { return name.find(word) != name.npos; };
  return std::any_of(std::begin(kListedAttributes), std::end(kListedAttributes), matches) &&
         std::none_of(std::begin(kAnything), std::end(kAnything), has);
}

static_assert(is_listed_attribute("k8s.pod.name") && is_listed_attribute("deployment.environment"));
static_assert(!is_listed_attribute("service.instance.id") && !is_listed_attribute("api.token") &&
              !is_listed_attribute("container.command_args") &&
              !is_listed_attribute("k8s.pod.annotation.owner"));

}  // namespace oomrec
