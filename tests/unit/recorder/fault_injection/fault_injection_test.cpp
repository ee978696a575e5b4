// Fault injection: which requests fail, and how they are recorded. Sites are on hand-made stacks.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <gnu/libc-version.h>

#include <vector>

#include "common/session/python_lines.h"
#include "recorder/device_memory/accounting.h"
#include "recorder/events/heap.h"
#include "recorder/failures/failures.h"
#include "recorder/fault_injection/fault_injection.h"
#include "recorder/limits/thresholds.h"
#include "recorder/recorder.h"
#include "recorder/stack/stack.h"
#include "recorder/state/request.h"
#include "recorder/state/thread_state.h"
#include "tests/unit/recorder/running.h"

using namespace oomrec;
using namespace oomrec::running;
using recorder::Request;
using session::Failure;
using session::g_session;

namespace {

void need_rules() {
  if (recorder::is_active()) return;
  Options options;
  options.session_dir = "/tmp";
  options.quiet = true;
  options.fail = "malloc:nth=3;calloc;operator_new:nth=2;mmap";
  REQUIRE(recorder::start(options));
  g_session.remove_file(kHook);
}

// The rule that fails the request; 0: none.
int rule_for(Api api, std::uint64_t bytes = 100, std::uint64_t counted = 0) {
  Request request{space_of(api), api, bytes};
  const bool admitted = recorder::admits(kHook, request, counted);
  CHECK(admitted == (request.rule == 0));
  return request.rule;
}

bool is_on_stack(const char* rule, std::uint32_t node) {
  options::InjectionRules rules;
  REQUIRE(options::parse_rules(rule, rules));
  return recorder::is_site_on_stack(kHook, rules.rules[0], node);
}

std::uint32_t python_node(const char* file, std::uint32_t line, std::uint32_t parent) {
  std::uint32_t code = 0;
  const session::StringId name = g_session.add_string(kHook, file);
  REQUIRE(g_session.codes.append(kHook, code, [&](session::Code& entry) {
    entry = {name, name, line, 0};
  }));
  return stack::intern(kHook, parent, session::python_frame(code, session::kNoInstruction));
}

std::uint32_t native_node(const void* function, std::uint32_t parent) {
  Dl_info info;
  REQUIRE(dladdr(function, &info) != 0);
  const auto start = reinterpret_cast<std::uint64_t>(info.dli_fbase);
  const session::StringId path = g_session.add_string(kHook, info.dli_fname);
  std::uint32_t id = 0;
  REQUIRE(g_session.modules.append(kHook, id, [&](session::Module& entry) {
    entry = {};
    entry.base = entry.start = start;
    entry.path = path;
  }));
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(function) - start;
  return stack::intern(kHook, parent, session::native_frame(id, offset + 1));
}

}  // namespace

TEST_CASE(
    "rules are checked for what they name, and the heap's fast path is off while one names it") {
  need_rules();
  CHECK_FALSE(recorder::may_be_quick());
  std::vector<int> by;
  for (int i = 0; i < 5; ++i) by.push_back(rule_for(Api::malloc));
  CHECK(by == std::vector<int>{0, 0, 1, 0, 0});
  CHECK(rule_for(Api::calloc) == 2);
  CHECK(rule_for(Api::calloc, 0) == 0);
  CHECK(rule_for(Api::realloc) == 0);
  CHECK(rule_for(Api::mmap) == 4);  // even if it does not count against a limit
}

TEST_CASE("the soft limit is checked only for counted spaces, after the rules") {
  need_rules();
  recorder::set_soft_limit(kHook, 1 << 20);
  Request request{Space::heap, Api::realloc, 8 << 20};
  CHECK(recorder::admits(kHook, request, 0));
  CHECK_FALSE(recorder::admits(kHook, request, 8 << 20));
  CHECK(request.rule == 0);
  CHECK(rule_for(Api::calloc, 100, 100) == 2);
  recorder::set_soft_limit(kHook, 0);
  CHECK(rule_for(Api::calloc) == 2);  // the rules stay without the limit
}

TEST_CASE("an announced operator new is the heap's next request only") {
  need_rules();
  recorder::reset_fault_injection_after_fork();
  recorder::announce_new_call();
  CHECK(rule_for(Api::malloc) == 0);
  CHECK(rule_for(Api::malloc) == 0);  // the second malloc, and not an operator new
  recorder::announce_new_call();
  CHECK(rule_for(Api::malloc) == 1);  // both rules apply: the first one in order fails it
}

TEST_CASE("the retry of a library's operator new fails again, once") {
  need_rules();
  recorder::reset_fault_injection_after_fork();
  CHECK(rule_for(Api::operator_new) == 0);
  recorder::fail_new_again();
  CHECK(rule_for(Api::realloc) == 0);  // nothing had failed
  CHECK(rule_for(Api::operator_new) == 3);
  {
    const recorder::FaultPause while_that_library_is_looked_up;
    CHECK(rule_for(Api::calloc) == 0);
  }
  CHECK(rule_for(Api::realloc) == 0);
  recorder::fail_new_again();
  CHECK(rule_for(Api::realloc) == 3);
  CHECK(rule_for(Api::realloc) == 0);
}

TEST_CASE("a forked child restarts the counts") {
  need_rules();
  recorder::reset_fault_injection_after_fork();
  CHECK(rule_for(Api::malloc) + rule_for(Api::malloc) == 0);
  recorder::reset_fault_injection_after_fork();
  CHECK(rule_for(Api::malloc) + rule_for(Api::malloc) == 0);
  CHECK(rule_for(Api::malloc) == 1);
}

TEST_CASE("an injected failure is a separate entry with the text of its rule") {
  need_rules();
  recorder::reset_failures_after_fork(kHook);
  doubles::g_bundles = {};
  doubles::t_stack = 77;
  const std::uint32_t base = g_session.failures.size();
  Request request{Space::heap, Api::calloc, 4321};
  recorder::on_failure(kHook, request, ENOMEM, recorder::FailedBy::system);
  REQUIRE_FALSE(recorder::admits(kHook, request, 4321));
  recorder::on_failure(kHook, request, ENOMEM, recorder::FailedBy::recorder);
  recorder::on_failure(kHook, request, ENOMEM, recorder::FailedBy::recorder);
  REQUIRE(g_session.failures.size() == base + 2);
  const Failure& by_system = g_session.failures.at(base);
  const Failure& injected = g_session.failures.at(base + 1);
  CHECK(by_system.flags == 0);
  CHECK(by_system.rule == 0);
  CHECK(by_system.counted.mappings > 0);
  CHECK(injected.flags == session::kFailureInjected);
  CHECK(g_session.view().string(injected.rule) == "calloc");
  CHECK(injected.counted.mappings == 0);  // memory was not short
  CHECK(injected.repeats == 1);
  CHECK(doubles::g_bundles.last.trigger == Trigger::allocation_failed);
}

TEST_CASE("a line of Python, wherever it is on the stack") {
  need_rules();
  const std::uint32_t outer = python_node("/home/me/train.py", 42, 0);
  const std::uint32_t inner = python_node("/usr/lib/python3/json.py", 7, outer);
  CHECK(is_on_stack("site=train.py:42", inner));
  CHECK(is_on_stack("site=json.py:7", inner));
  CHECK_FALSE(is_on_stack("site=train.py:7", inner));
  CHECK_FALSE(is_on_stack("site=json.py:7", outer));
}

TEST_CASE("an exported function of a module") {
  need_rules();
  // A function that no sanitizer redefines.
  const std::uint32_t node = native_node(reinterpret_cast<const void*>(&gnu_get_libc_version), 0);
  const std::uint32_t inner = python_node("a.py", 1, node);
  CHECK(is_on_stack("site=libc!gnu_get_libc_version", inner));
  CHECK(is_on_stack("site=libc.so.6!gnu_get_libc_version", node));
  CHECK_FALSE(is_on_stack("site=libc!qsort", node));
  CHECK_FALSE(is_on_stack("site=libc!no_such_function", node));
  CHECK_FALSE(is_on_stack("site=libm!gnu_get_libc_version", node));
}
