// Bundles, and recordings without a bundle, as a page and as JSON (docs/commands/ls.md).
#pragma once

#include <vector>

#include "tools/base/json.h"
#include "tools/base/terminal.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"

namespace oomrec::tools::sections {

struct BundleList {
  std::vector<bundles::BundleSummary> bundles;
  std::vector<bundles::Session> recordings;

  bool empty() const { return bundles.empty() && recordings.empty(); }
};

void print_bundle_list(const BundleList& list, const Terminal& terminal);

Json bundles_json(const BundleList& list);
Json recordings_json(const BundleList& list);

}  // namespace oomrec::tools::sections
