// Groups of threads, by their names.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "common/session/view.h"
#include "recorder/state/thread_state.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using session::g_session;

namespace {

std::string name_of_group(std::uint32_t node) {
  return std::string{g_session.view().string(session::argument_of(g_session.node(node).frame))};
}

}  // namespace

TEST_CASE("when there are too many names, further ones are other threads") {
  need(Mode::sampled);
  const std::uint32_t main = recorder::group_node(kHook, "main");
  std::set<std::uint32_t> groups;
  for (unsigned i = 0; i < 1000; ++i) {
    const std::string name = "worker-" + std::to_string(i);
    const std::uint32_t group = recorder::group_node(kHook, name);
    const std::string found = name_of_group(group);
    REQUIRE((found == name || (i > 200 && found == "other threads")));
    groups.insert(group);
  }
  CHECK(groups.size() > 200);
  CHECK(groups.size() < 256);
  CHECK(recorder::group_node(kHook, "main") == main);
  CHECK(name_of_group(recorder::group_node(kHook, "worker-7")) == "worker-7");
  CHECK(name_of_group(recorder::group_node(kHook, "forgotten stacks")) == "forgotten stacks");
  CHECK(name_of_group(recorder::group_node(kHook, "late")) == "other threads");
}
