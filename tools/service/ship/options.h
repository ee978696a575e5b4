// The options of the commands that ship bundles.
#pragma once

#include <string>

#include "tools/base/arguments.h"
#include "tools/service/ship/shipment.h"

namespace oomrec::tools::service {

struct ShipOptions {
  std::string url, command;  // empty: off
  unsigned raw_bundles = 3;
  unsigned timeout_s = 20;  // to ship what is left at the end

  // `timeout`: what --ship-timeout bounds, for --help.
  void add_to(Arguments& arguments, const std::string& timeout);
  bool wants_any() const { return !url.empty() || !command.empty(); }

  // Throws Error if they contradict each other, or nothing can be shipped this way.
  void check(const Arguments& arguments) const;
  ShipSettings settings() const;
};

}  // namespace oomrec::tools::service
