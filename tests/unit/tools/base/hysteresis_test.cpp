// Figures that hover at a threshold.
#include "tools/base/hysteresis.h"

#include <doctest/doctest.h>

#include <string>

using namespace oomrec::tools;

TEST_CASE("a figure that hovers at its threshold falls once") {
  Hysteresis<std::string> shortages;
  const auto falls = [&](const char* key, double ratio) {
    return shortages.begins(key, ratio < 0.1, ratio >= 0.15);
  };
  CHECK(!falls("a", 0.11));
  CHECK(falls("a", 0.09));
  CHECK(!falls("a", 0.05));
  CHECK(!falls("a", 0.14));  // not far enough
  CHECK(!falls("a", 0.09));
  CHECK(falls("b", 0.09));  // another figure
  CHECK(!falls("a", 0.151));
  CHECK(falls("a", 0.0999));
  shortages.forget("a");
  CHECK(falls("a", 0.09));
}
