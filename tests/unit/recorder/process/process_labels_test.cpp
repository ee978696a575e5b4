// The labels of a process, from its environment.
#include "recorder/process/job.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

using namespace oomrec::recorder;

namespace {

// With "|" for NUL.
std::string labels_of(const std::vector<std::string>& environment) {
  std::vector<const char*> entries;
  for (const std::string& entry : environment) entries.push_back(entry.c_str());
  entries.push_back(nullptr);
  static char buffer[kProcessLabelsBytes];
  std::string labels{read_process_labels(entries.data(), buffer)};
  for (char& c : labels)
    if (c == '\0') c = '|';
  return labels;
}

}  // namespace

TEST_CASE("OpenTelemetry's names, the user's, the launchers', in this order") {
  CHECK(labels_of({"OOMREC_LABELS=team=ml, release = 7", "SLURM_RESTART_COUNT=2", "HOME=/root",
                   "OTEL_RESOURCE_ATTRIBUTES=service.version=1.8,k8s.pod.name=web-0",
                   "OTEL_SERVICE_NAME=shop"}) ==
        "service.name=shop|service.version=1.8|k8s.pod.name=web-0|team=ml|release=7|attempt=2");
  CHECK(labels_of({}).empty());
}

TEST_CASE("attributes that could hold anything are left out") {
  CHECK(labels_of({"OTEL_RESOURCE_ATTRIBUTES=api.key=hunter2,container.command_args=--token x,"
                   "k8s.pod.annotation.owner=me,enduser.id=7,host.name=n1"}) == "host.name=n1");
}

TEST_CASE("secrets among the user's labels are masked") {
  const std::string labels = labels_of({"OOMREC_LABELS=team=ml,password=hunter2"});
  CHECK(labels.find("hunter2") == labels.npos);
  CHECK(labels.starts_with("team=ml|password="));
}

TEST_CASE("what is no label, or too long, is left out") {
  const std::string longest(5000, 'x');
  CHECK(labels_of({"OOMREC_LABELS=,=,a,=b,c=,,d=e,f=" + longest}) == "d=e");
  std::string many = "OOMREC_LABELS=";
  for (int i = 0; i < 2000; ++i) many += "k" + std::to_string(i) + "=v,";
  const std::string labels = labels_of({many});
  CHECK(labels.size() < kProcessLabelsBytes);
  CHECK(labels.ends_with("=v"));
}
