// Prints a table of common/verdict for tests/integration/test_docs.py: `events` and `deaths` as
// docs/deaths.md has them, or the verdicts of `workers` that explain their parent's end.
#include <cstdio>
#include <string>
#include <string_view>

#include "common/verdict/rules.h"

namespace {

using namespace oomrec;

void print(std::span<const verdict::RuleText> rules) {
  std::puts("| rule | when | verdict |\n| --- | --- | --- |");
  for (const verdict::RuleText& rule : rules) {
    const std::string code{name_of(rule.code)};
    std::printf("| %s | %s | %s |\n", std::string{rule.name}.c_str(),
                std::string{rule.when}.c_str(),
                rule.several ? "several" : ("`" + code + "`").c_str());
  }
}

}  // namespace

int main(int count, char** words) {
  const std::string_view table = count == 2 ? words[1] : "";
  if (table == "events") return print(verdict::rules_of_events()), 0;
  if (table == "deaths") return print(verdict::rules_of_deaths()), 0;
  if (table != "workers") return 2;
  for (const verdict::Kind& kind : verdict::kKinds)
    if (!kind.worker.empty()) std::puts(std::string{name_of(kind.code)}.c_str());
}
