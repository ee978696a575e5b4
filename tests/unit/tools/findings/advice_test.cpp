// Advice: each rule has facts on which it must fire, and similar ones on which it must not.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/unit/tools/readable_image.h"
#include "tools/findings/advice/advice.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

recording::Location python(std::string file, std::string function) {
  recording::Location location;
  location.kind = recording::Location::Kind::python;
  location.file = std::move(file);
  location.function = std::move(function);
  location.line = 7;
  return location;
}

recording::Location native(std::string function) {
  recording::Location location;
  location.function = std::move(function);
  return location;
}

// A training program at its limit, whose largest holder is level.
findings::AdviceFacts plain_facts() {
  findings::AdviceFacts facts;
  findings::SubjectFigures held;
  held.subject = "train.py:7 make_batch";
  held.stack = {python("/p/train.py", "make_batch"), python("/p/train.py", "main")};
  held.holder = 5;
  held.ever_bytes = 6000 * kMiB;  // most of it was freed
  held.bytes = 600 * kMiB;
  held.count = 60;
  facts.held = {held};
  facts.all_bytes = 1000 * kMiB;
  facts.request_bytes = 100 * kMiB;
  facts.limit_bytes = kGiB;
  facts.host_bytes = 900 * kMiB;
  facts.rss_bytes = kGiB;
  facts.threads = 4;
  facts.is_python = true;
  facts.request_stack = held.stack;
  return facts;
}

// Puts a frame just inside of the largest holder's line, or just outside of its function.
void add_inside(findings::AdviceFacts& facts, recording::Location frame) {
  auto& held = facts.held[0];
  held.stack.insert(held.stack.begin() + static_cast<std::ptrdiff_t>(held.line++),
                    std::move(frame));
}
void add_outside(findings::AdviceFacts& facts, recording::Location frame) {
  auto& held = facts.held[0];
  held.stack.insert(held.stack.begin() + static_cast<std::ptrdiff_t>(held.line + 1),
                    std::move(frame));
}

// The line is a Dataset's, called by a DataLoader.
void make_items(findings::AdviceFacts& facts) {
  facts.held[0].stack[0].function = "Images.__getitem__";
  facts.held[0].ever_bytes = facts.held[0].bytes;
}

struct Trial {
  std::string_view rule;
  void (*fires)(findings::AdviceFacts&);
  void (*does_not)(findings::AdviceFacts&);
  bool names_holder;
};

void grow(findings::AdviceFacts& facts) {
  facts.held[0].growth = findings::Growth{};
  facts.held[0].growth->bytes = 580.0 * kMiB;
  facts.held[0].growth->window_seconds = 60;
}

recording::DeviceFigures device_with(std::uint64_t allocated, std::uint64_t reserved) {
  recording::DeviceFigures device;
  device.label = "cuda:0";
  device.torch = {allocated, reserved, {}};
  return device;
}

const Trial kTrials[] = {
    {"request_above_limit", [](findings::AdviceFacts& f) { f.request_bytes = 2 * kGiB; },
     [](findings::AdviceFacts& f) { f.request_bytes = kGiB; }, false},
    {"shared_memory", [](findings::AdviceFacts& f) { f.verdict = VerdictCode::shared_memory_full; },
     [](findings::AdviceFacts& f) { f.verdict = VerdictCode::soft_limit; }, false},
    {"shared_files",
     [](findings::AdviceFacts& f) {
       f.limit.cgroup_bytes = kGiB;
       f.limit.unmapped_shared_bytes = 300 * kMiB;
     },
     [](findings::AdviceFacts& f) {
       f.limit.cgroup_bytes = kGiB;
       f.limit.unmapped_shared_bytes = 200 * kMiB;
     },
     false},
    {"kept_graph",
     [](findings::AdviceFacts& f) {
       grow(f);
       f.held[0].kept_operations = 2;
     },
     [](findings::AdviceFacts& f) {  // outputs that are kept under torch.no_grad()
       grow(f);
       f.held[0].kept_operations = 1;
     },
     true},
    {"kept_graph",
     [](findings::AdviceFacts& f) {
       grow(f);
       f.held[0].has_graph_nodes = true;
     },
     [](findings::AdviceFacts& f) { f.held[0].has_graph_nodes = true; }, true},
    {"kept_items", make_items,
     [](findings::AdviceFacts& f) {  // a batch that is in flight
       make_items(f);
       f.held[0].ever_bytes = 2 * f.held[0].bytes;
     },
     true},
    {"kept_items",
     [](findings::AdviceFacts& f) {
       make_items(f);
       grow(f);
       add_outside(f, python("/v/site-packages/torch/utils/data/_utils/fetch.py", "fetch"));
     },
     [](findings::AdviceFacts& f) {  // one item, in a few blocks
       make_items(f);
       f.held[0].count = 3;
     },
     true},
    {"kept_items",
     [](findings::AdviceFacts& f) {  // in a function of the program's that __getitem__ calls
       make_items(f);
       add_outside(f, f.held[0].stack[0]);
       f.held[0].stack[0].function = "decode";
     },
     [](findings::AdviceFacts& f) {  // the library's own __getitem__ calls the program
       make_items(f);
       f.held[0].stack[0].function = "decode";
       add_outside(f, python("/v/site-packages/torch/utils.py", "Subset.__getitem__"));
     },
     true},
    {"growing", grow,
     [](findings::AdviceFacts& f) {
       grow(f);
       f.held[0].bytes = 100 * kMiB;  // little
     },
     true},
    {"growing",
     [](findings::AdviceFacts& f) {  // called by PyTorch, which says nothing of its memory
       grow(f);
       add_outside(f, python("/v/site-packages/torch/utils/_contextlib.py", "decorate_context"));
     },
     [](findings::AdviceFacts& f) {
       grow(f);
       f.held[0].has_graph_nodes = true;
     },
     true},
    {"managed_heap",
     [](findings::AdviceFacts& f) {
       f.held[0].subject = "[the Go heap: objects of the program, or free]";
       for (recording::Location& location : f.held[0].stack)
         location.kind = recording::Location::Kind::native;
       grow(f);
     },
     [](findings::AdviceFacts& f) { f.held[0].subject = "[the Go heaps of my program]"; }, true},
    {"lost",
     [](findings::AdviceFacts& f) {
       grow(f);
       for (recording::Location& location : f.held[0].stack)
         location.kind = recording::Location::Kind::native;
     },
     grow, true},
    {"more_at_a_time",
     [](findings::AdviceFacts& f) {
       grow(f);
       f.held[0].ever_bytes = 100 * f.held[0].bytes;
       for (recording::Location& location : f.held[0].stack)
         location.kind = recording::Location::Kind::native;
     },
     [](findings::AdviceFacts& f) {
       grow(f);
       for (recording::Location& location : f.held[0].stack)
         location.kind = recording::Location::Kind::native;
     },
     true},
    {"data_loader",
     [](findings::AdviceFacts& f) {
       f.held[0].stack.push_back(
           python("/v/site-packages/torch/utils/data/dataloader.py", "__next__"));
     },
     [](findings::AdviceFacts& f) {
       f.held[0].stack.push_back(python("/p/torch_utils/data.py", "__next__"));
     },
     true},
    {"pinned_memory", [](findings::AdviceFacts& f) { f.held[0].space = Space::cuda_host; },
     [](findings::AdviceFacts& f) { f.held[0].space = Space::cuda; }, true},
    {"cache", [](findings::AdviceFacts& f) { f.held[0].stack[0].function = "fill_cache"; },
     [](findings::AdviceFacts& f) {
       f.held[0].stack[0].function = "fill_cache";
       f.held[0].bytes = 100 * kMiB;  // little
     },
     true},
    {"cache",
     [](findings::AdviceFacts& f) { add_outside(f, native("bounded_lru_cache_wrapper.cold")); },
     [](findings::AdviceFacts& f) { add_outside(f, native("uncached_lru_cache_wrapper")); }, true},
    {"cache",
     [](findings::AdviceFacts& f) { add_outside(f, native("infinite_lru_cache_wrapper")); },
     [](findings::AdviceFacts& f) {  // another function is the cached one
       add_outside(f, native("infinite_lru_cache_wrapper"));
       add_outside(f, python("/p/train.py", "cached"));
     },
     true},
    {"cache",
     [](findings::AdviceFacts& f) {
       add_outside(f, python("/v/site-packages/cachetools/func.py", "wrapper"));
     },
     [](findings::AdviceFacts& f) { f.held[0].subject = "/root/.cache/hub/model.py:7 build"; },
     true},
    {"cache",
     [](findings::AdviceFacts& f) {  // a decorator of the program's own
       add_outside(f, python("/p/train.py", "memoize.<locals>.wrapper"));
     },
     [](findings::AdviceFacts& f) {  // its caller's caller
       add_outside(f, python("/p/train.py", "memoize.<locals>.wrapper"));
       add_outside(f, python("/p/train.py", "read"));
     },
     true},
    {"copied_table",
     [](findings::AdviceFacts& f) {
       add_inside(f, python("/v/site-packages/pandas/core/internals/managers.py", "astype"));
       add_inside(f, python("/v/site-packages/pandas/core/generic.py", "NDFrame.fillna"));
       add_inside(f, python("/v/site-packages/pandas/util/_decorators.py", "wrapper"));
     },
     [](findings::AdviceFacts& f) {  // made, not copied, although a copy is part of it
       add_inside(f, python("/v/site-packages/pandas/core/internals/managers.py", "copy"));
       add_inside(f, python("/v/site-packages/pandas/core/frame.py", "DataFrame.__init__"));
     },
     true},
    {"copied_table",
     [](findings::AdviceFacts& f) {
       f.request_stack = {python("/v/site-packages/pandas/core/reshape/concat.py", "concat"),
                          python("/p/train.py", "main")};
       f.request_line = 1;
     },
     [](findings::AdviceFacts& f) {  // pandas calls the program, which asks
       f.request_stack = {python("/p/train.py", "grow"),
                          python("/v/site-packages/pandas/core/generic.py", "NDFrame.copy")};
       f.request_line = 0;
     },
     false},
    {"read_whole",
     [](findings::AdviceFacts& f) { f.request_stack = {python("/v/pandas/io.py", "read_csv")}; },
     [](findings::AdviceFacts& f) { f.request_stack = {python("/v/pandas/io.py", "to_csv")}; },
     false},
    {"device_fragmentation",
     [](findings::AdviceFacts& f) { f.devices = {device_with(6 * kGiB, 10 * kGiB)}; },
     [](findings::AdviceFacts& f) { f.devices = {device_with(8 * kGiB, 10 * kGiB)}; }, false},
    {"thread_arenas", [](findings::AdviceFacts& f) { f.threads = 32, f.rss_bytes = 2 * kGiB; },
     [](findings::AdviceFacts& f) { f.threads = 2, f.rss_bytes = 2 * kGiB; }, false},
    {"free_heap", [](findings::AdviceFacts& f) { f.unheld_heap_bytes = 400 * kMiB; },
     [](findings::AdviceFacts& f) { f.unheld_heap_bytes = 300 * kMiB; }, false},
    {"many_small", [](findings::AdviceFacts& f) { f.held[0].count = 10'000'000; },
     [](findings::AdviceFacts& f) { f.held[0].count = 1'000'000; }, true},
    {"limit", [](findings::AdviceFacts& f) { f.verdict = VerdictCode::cgroup_oom_kill; },
     [](findings::AdviceFacts& f) { f.verdict = VerdictCode::crashed; }, false},
};

std::set<std::string_view> rules_of(const findings::AdviceFacts& facts) {
  std::set<std::string_view> rules;
  for (const findings::Hint& hint : findings::advice_of(facts)) rules.insert(hint.rule);
  return rules;
}

}  // namespace

TEST_CASE("each rule fires on its facts, and no other rule does") {
  std::set<std::string_view> tried;
  for (const Trial& trial : kTrials) {
    findings::AdviceFacts ill = plain_facts(), well = plain_facts();
    trial.fires(ill);
    trial.does_not(well);
    CHECK_MESSAGE(rules_of(ill) == std::set<std::string_view>{trial.rule}, trial.rule);
    CHECK_MESSAGE(!rules_of(well).contains(trial.rule), trial.rule);
    const std::vector<findings::Hint> advice = findings::advice_of(ill);
    CHECK(advice.at(0).holder.has_value() == trial.names_holder);
    CHECK_MESSAGE(advice[0].text.size() > 40, advice[0].text);
    tried.insert(trial.rule);
  }
  for (const findings::AdviceRule& rule : findings::advice_rules())
    CHECK_MESSAGE(tried.contains(rule.name), rule.name);
  CHECK(rules_of(plain_facts()).empty());
}

TEST_CASE("tensors that grow without a sign of a graph: detach() may help") {
  findings::AdviceFacts tensors = plain_facts(), bytes = plain_facts();
  grow(tensors), grow(bytes);
  add_inside(tensors, native("torch::autograd::THPVariable_linear(_object*, _object*)"));
  CHECK(findings::advice_of(tensors).at(0).text.find(".detach()") != std::string::npos);
  CHECK(findings::advice_of(bytes).at(0).text.find(".detach()") == std::string::npos);
  // The profiler's records of such an operation are no tensors.
  findings::AdviceFacts profiled = plain_facts();
  grow(profiled);
  add_inside(profiled, native("torch::profiler::impl::ThreadLocalSubqueue::begin_op()"));
  add_inside(profiled, native("torch::autograd::THPVariable_linear(_object*, _object*)"));
  CHECK(findings::advice_of(profiled).at(0).text.find(".detach()") == std::string::npos);
}

TEST_CASE("the facts of a recording: holders by subject, with their growth") {
  tests::ReadableImage image;
  image.open<session::Checkpoint>(session::TableId::checkpoints);
  image.open<session::CheckpointRow>(session::TableId::checkpoint_rows);
  const auto line = image.python("/home/me/train.py", "keep", 12);
  const auto other = image.python("/home/me/train.py", "main", 30);
  const auto torch = image.python("/v/site-packages/torch/nn.py", "linear", 4);
  const std::uint32_t small = image.holder(image.stack({other, line}), Space::heap, 100 * kMiB, 2);
  const std::uint32_t torch_node = image.stack({line, torch});
  const std::uint32_t large = image.holder(torch_node, Space::map, 700 * kMiB, 3);
  image.holder(image.stack({line}), Space::torch, 900 * kMiB, 1);  // inside of other spaces
  for (std::uint64_t second = 1; second <= 12; ++second) {
    std::uint32_t first = 0;
    image.add<session::CheckpointRow>(session::TableId::checkpoint_rows, &first) = {
        small, static_cast<std::uint32_t>(second * 1000), (40 + second * 5) * kMiB};
    image.add<session::CheckpointRow>(session::TableId::checkpoint_rows) = {
        large, static_cast<std::uint32_t>(second * 1000), second * 50 * kMiB};
    auto& checkpoint = image.add<session::Checkpoint>(session::TableId::checkpoints);
    checkpoint.time_ns = image.header().start_monotonic_ns + second * 1'000'000'000;
    checkpoint.first_row = first, checkpoint.rows = 2;
  }
  image.header().last_tick_ns = image.header().start_monotonic_ns + 13'000'000'000;

  const findings::AdviceFacts facts = findings::advice_facts(image.source());

  REQUIRE(facts.held.size() == 2);
  CHECK(facts.held[0].subject == "/home/me/train.py:12 keep");
  CHECK(facts.held[0].holder == large);
  CHECK(facts.held[0].bytes == 800 * kMiB);
  CHECK(facts.held[0].count == 5);
  CHECK(facts.held[0].stack[0].function == "linear");
  CHECK(facts.held[0].line == 1);  // linear() is inside of the program's line
  CHECK(facts.held[0].ever_bytes == 800 * kMiB);
  REQUIRE(facts.held[0].growth);
  CHECK(facts.held[0].growth->bytes == doctest::Approx((650.0 + 55) * kMiB));  // of both stacks
  CHECK(!facts.held[1].growth);
  CHECK(facts.held[1].bytes == 640 * kMiB);
  CHECK(facts.all_bytes == 1440 * kMiB);
  CHECK(facts.request_bytes == 412 * kMiB);
  CHECK(facts.limit_bytes == kGiB);
  CHECK(facts.is_python);
  CHECK(facts.share_of(720 * kMiB) == 0.5);

  // Of 800 MiB a fifth is in memory, and so of what has grown.
  image.open<session::ResidencyPage>(session::TableId::residency);
  auto& page = image.add<session::ResidencyPage>(session::TableId::residency);
  session::Residency look{};
  look.time_ns = look.row_count = 1;
  look.untouched_bytes = 640 * kMiB;
  const session::ResidencyRow row{large, torch_node, look.untouched_bytes, 0, 0, 0};
  std::memcpy(&page, &look, sizeof look);
  std::memcpy(reinterpret_cast<std::byte*>(&page) + sizeof look, &row, sizeof row);
  image.header().latest_look = 1;
  const bundles::Source source = image.source();
  source.recording->set_weight(recording::Weight::resident);
  const findings::AdviceFacts weighed = findings::advice_facts(source);
  const auto held = std::find_if(weighed.held.begin(), weighed.held.end(), [](const auto& one) {
    return one.subject == "/home/me/train.py:12 keep";
  });
  REQUIRE(held != weighed.held.end());
  CHECK(held->bytes == 160 * kMiB);
  CHECK(held->growth->bytes == doctest::Approx((650.0 + 55) / 5 * kMiB));
}
