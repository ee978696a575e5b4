// The rules of --fail: syntax, matching, and which calls fail.
#include "common/options/fault_rules.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace oomrec;
using namespace oomrec::options;

namespace {

options::InjectionRule rule_of(std::string_view text) {
  options::InjectionRules rules;
  CAPTURE(text);
  REQUIRE(options::parse_rules(text, rules));
  REQUIRE(rules.count == 1);
  return rules.rules[0];
}

bool fits(std::string_view rule, Api api, std::uint64_t bytes = 100, bool by_new = false) {
  return rule_of(rule).fits(api, space_of(api), bytes, by_new);
}

std::vector<int> refused(const options::InjectionRule& rule, int calls) {
  options::RuleCalls state;
  state.start(rule);
  std::vector<int> which;
  for (int i = 1; i <= calls; ++i)
    if (state.should_fail(rule)) which.push_back(i);
  return which;
}

}  // namespace

TEST_CASE("a rule has function, call number, size and site") {
  const options::InjectionRule rule = rule_of("realloc:nth=1000,min=1.5M,site=src/train.py:42");
  CHECK(rule.text == "realloc:nth=1000,min=1.5M,site=src/train.py:42");
  CHECK(rule.api == Api::realloc);
  CHECK(rule.nth == 1000);
  CHECK(rule.min_bytes == 3 << 19);
  CHECK(rule.file == "src/train.py");
  CHECK(rule.line == 42);
  CHECK(rule.has_site());
  CHECK(rule_of("site=./a:b.py:7").file == "a:b.py");

  const options::InjectionRule native = rule_of("site=libfoo.so.1!foo_make,p=0.5,seed=7");
  CHECK(native.api == Api::none);
  CHECK(native.module == "libfoo.so.1");
  CHECK(native.function == "foo_make");
  CHECK(native.chance == ~std::uint64_t{0} / 2);
  CHECK(native.seed == 7);
  CHECK(rule_of("mmap:p=1").chance == ~std::uint64_t{0});
  CHECK(rule_of("heap").heap_only);
}

TEST_CASE("several rules, up to eight") {
  options::InjectionRules rules;
  REQUIRE(options::parse_rules("malloc:nth=3;mmap:p=0.01,seed=7;site=a.py:3", rules));
  CHECK(rules.count == 3);
  CHECK(rules.rules[1].api == Api::mmap);
  std::string many = "heap";
  for (unsigned i = 1; i < options::kMaxRules; ++i) many += ";heap";
  CHECK(options::parse_rules(many, rules));
  CHECK_FALSE(options::parse_rules(many + ";heap", rules));
}

TEST_CASE("invalid rules are rejected") {
  for (const char* text : {"",
                           ";",
                           "malloc;;",
                           "maloc:nth=3",
                           "free",
                           "munmap:nth=1",
                           "request",
                           "malloc:",
                           "nth=",
                           "malloc:nth=0",
                           "malloc:nth=-1",
                           "malloc:nth=1K",
                           "malloc:nth=1,nth=2",
                           "malloc:nth=1,p=0.5",
                           "mmap:p=0",
                           "mmap:p=0.0",
                           "mmap:p=1.1",
                           "mmap:p=2",
                           "mmap:p=x",
                           "mmap:p=",
                           "mmap:p=0.1234567891",
                           "mmap:seed=7",
                           "malloc:min=1X",
                           "site=",
                           "site=a.py",
                           "site=a.py:",
                           "site=a.py:0",
                           "site=:3",
                           "site=!f",
                           "site=libfoo!",
                           "malloc:color=red"}) {
    options::InjectionRules rules;
    CAPTURE(text);
    CHECK_FALSE(options::parse_rules(text, rules));
  }
}

TEST_CASE("a rule matches its own calls") {
  CHECK(fits("malloc", Api::malloc));
  CHECK_FALSE(fits("malloc", Api::calloc));
  CHECK(fits("heap", Api::calloc));
  CHECK(fits("heap", Api::operator_new));
  CHECK_FALSE(fits("heap", Api::mmap));
  CHECK(fits("site=a.py:1", Api::malloc));
  CHECK(fits("site=a.py:1", Api::mmap));
  CHECK_FALSE(fits("site=a.py:1", Api::fork, 0));
  CHECK_FALSE(fits("site=a.py:1", Api::pthread_create));
  CHECK(fits("fork", Api::fork, 0));
  CHECK(fits("pthread_create", Api::pthread_create));
  CHECK_FALSE(fits("malloc:min=4K", Api::malloc, 4095));
  CHECK(fits("malloc:min=4K", Api::malloc, 4096));
  CHECK_FALSE(fits("malloc", Api::malloc, 0));  // NULL would mean success there
  CHECK(fits("operator_new", Api::malloc, 100, true));
  CHECK_FALSE(fits("operator_new", Api::malloc, 100, false));
}

TEST_CASE("driver functions, also those without a size") {
  const auto fits_on_gpu = [](std::string_view rule, Api api, std::uint64_t bytes) {
    return rule_of(rule).fits(api, Space::cuda, bytes, false);
  };
  CHECK(fits_on_gpu("cuMemAlloc", Api::cuMemAlloc, 100));
  CHECK_FALSE(fits_on_gpu("cuMemAlloc", Api::cuMemAllocAsync, 100));
  CHECK_FALSE(fits_on_gpu("cuMemAlloc:min=1K", Api::cuMemAlloc, 100));
  CHECK(fits_on_gpu("cuCtxCreate", Api::cuCtxCreate, 0));
  CHECK(fits_on_gpu("hipMalloc:nth=3", Api::hipMalloc, 100));
  CHECK(fits_on_gpu("site=a.py:1", Api::cuMemAlloc, 100));
  CHECK_FALSE(fits_on_gpu("site=a.py:1", Api::cuCtxCreate, 0));
  CHECK_FALSE(fits_on_gpu("heap", Api::cuMemAlloc, 100));
  for (const char* text : {"cuMemFree", "hipFree", "cuCtxDestroy", "cuMemUnmap", "cuMemGetMemPool",
                           "hipGetProcAddress", "cuMemAlloc_v2", "none"}) {
    options::InjectionRules rules;
    CAPTURE(text);
    CHECK_FALSE(options::parse_rules(text, rules));
  }
}

TEST_CASE("rules that apply to the heap") {
  for (const char* text : {"heap", "malloc", "operator_new", "site=a.py:1"})
    CHECK(rule_of(text).concerns_heap());
  for (const char* text : {"mmap", "shmat:site=a.py:1", "cuMemAlloc"})
    CHECK_FALSE(rule_of(text).concerns_heap());
}

TEST_CASE("the n-th call, once; without a number each call") {
  CHECK(refused(rule_of("malloc:nth=3"), 10) == std::vector<int>{3});
  CHECK(refused(rule_of("malloc"), 3) == std::vector<int>{1, 2, 3});
  CHECK(refused(rule_of("malloc:p=1"), 3) == std::vector<int>{1, 2, 3});
}

TEST_CASE("by probability: as often as requested, and the same calls each time") {
  const auto first = refused(rule_of("malloc:p=0.01,seed=7"), 100'000);
  CHECK(first.size() > 850);
  CHECK(first.size() < 1150);
  CHECK(refused(rule_of("malloc:p=0.01,seed=7"), 100'000) == first);
  CHECK(refused(rule_of("malloc:p=0.01,seed=8"), 100'000) != first);
}

TEST_CASE("a module by its name, a file by its last components") {
  CHECK(options::is_module("/usr/lib/libfoo.so.1.2", "libfoo"));
  CHECK(options::is_module("/usr/lib/libfoo.so.1.2", "libfoo.so"));
  CHECK(options::is_module("/usr/lib/libfoo.so.1.2", "libfoo.so.1"));
  CHECK(options::is_module("/bin/train", "train"));
  CHECK_FALSE(options::is_module("/usr/lib/libfoobar.so", "libfoo"));
  CHECK_FALSE(options::is_module("/usr/libfoo/libbar.so", "libfoo"));
  CHECK(options::is_file("/home/me/train.py", "train.py"));
  CHECK(options::is_file("/home/me/train.py", "me/train.py"));
  CHECK(options::is_file("train.py", "/home/me/train.py"));
  CHECK_FALSE(options::is_file("/home/me/retrain.py", "train.py"));
  CHECK_FALSE(options::is_file("/home/me/train.py", "you/train.py"));
}
