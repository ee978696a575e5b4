#include "recorder/fault_injection/fault_injection.h"

#include <algorithm>

#include "common/options/fault_rules.h"
#include "common/session/view.h"
#include "common/text/frames.h"
#include "recorder/session/index.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/node_scope.h"
#include "recorder/state/state.h"
#include "recorder/state/thread_state.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::recorder {

using options::InjectionRule;
using session::g_session;

namespace {

// Caches which rules have their site on a stack: the node in the high half, a bit for each rule in
// the low half.
constexpr std::size_t kCachedStacks = 4096;
static_assert(options::kMaxRules <= 32);

struct Injection {
  options::InjectionRules rules;
  options::RuleCalls calls[options::kMaxRules];
  bool has_site = false;
  std::atomic<std::uint64_t> cache[kCachedStacks] = {};
};
constinit Injection g_injection;

// The state of an `operator new` call on this thread.
struct NewCallState {
  bool announced;       // the next request of the heap is its own
  std::uint8_t failed;  // the rule that failed the latest call, until its library is known
  std::uint8_t again;   // that rule, for the library's own call, which repeats the request
  bool paused;          // a FaultPause exists
};
[[gnu::tls_model("initial-exec")]] constinit thread_local NewCallState t_new{};

std::uint32_t find_sites(InHook hook, std::uint32_t node) noexcept {
  std::uint32_t found = 0;
  for (unsigned i = 0; i < g_injection.rules.count; ++i) {
    const InjectionRule& rule = g_injection.rules.rules[i];
    if (rule.has_site() && is_site_on_stack(hook, rule, node)) found |= 1U << i;
  }
  return found;
}

// The rules whose site is on the calling thread's stack.
std::uint32_t sites_here(InHook hook) noexcept {
  if (phase() == Phase::waiting) begin_waiting_session(hook);
  ThreadState* const thread = phase() == Phase::active ? current_thread(hook) : nullptr;
  if (thread == nullptr) return 0;
  const NodeScope nodes{hook, thread};
  const std::uint32_t node = stack::capture(hook, thread->stacks, thread->root(hook));
  std::atomic<std::uint64_t>& cached = g_injection.cache[session::mix(node) % kCachedStacks];
  const std::uint64_t word = cached.load(std::memory_order_relaxed);
  // In another era the node may be another stack's.
  const auto key =
      node ^ static_cast<std::uint32_t>(session::g_era_salt.load(std::memory_order_relaxed));
  if (word >> 32 == key && node != 0) return static_cast<std::uint32_t>(word);
  const std::uint32_t found = find_sites(hook, node);
  cached.store(std::uint64_t{key} << 32 | found, std::memory_order_relaxed);
  return found;
}

}  // namespace

void start_fault_injection(const char* text) noexcept {
  Injection& injection = g_injection;
  if (!options::parse_rules(text, injection.rules)) injection.rules.count = 0;
  for (unsigned i = 0; i < injection.rules.count; ++i) {
    const InjectionRule& rule = injection.rules.rules[i];
    injection.has_site = injection.has_site || rule.has_site();
    g_state.heap_rules = g_state.heap_rules || rule.concerns_heap();
  }
  reset_fault_injection_after_fork();
}

bool has_fault_rules() noexcept { return g_injection.rules.count != 0; }

bool has_new_rules() noexcept {
  for (unsigned i = 0; i < g_injection.rules.count; ++i)
    if (g_injection.rules.rules[i].api == Api::operator_new) return true;
  return false;
}

void announce_new_call() noexcept { t_new.announced = true; }
void fail_new_again() noexcept { t_new.again = t_new.failed; }
FaultPause::FaultPause() noexcept { t_new.paused = true; }
FaultPause::~FaultPause() { t_new.paused = false; }

std::uint8_t failing_rule(InHook hook, const Request& request) noexcept {
  if (!has_fault_rules() || t_new.paused) return 0;
  bool by_new = false;
  if (request.space == Space::heap) {
    const NewCallState asked = t_new;
    t_new.announced = false;
    t_new.again = 0;
    if (asked.again != 0) {
      if (request.api == Api::operator_new)
        t_new.failed = asked.again;  // its library is known by now
      return asked.again;
    }
    by_new = asked.announced;
  }
  const std::uint32_t sites = g_injection.has_site ? sites_here(hook) : 0;
  std::uint8_t failing = 0;
  for (unsigned i = 0; i < g_injection.rules.count; ++i) {
    const InjectionRule& rule = g_injection.rules.rules[i];
    if (!rule.fits(request.api, request.space, request.bytes, by_new)) continue;
    if (rule.has_site() && (sites >> i & 1) == 0) continue;
    if (g_injection.calls[i].should_fail(rule) && failing == 0)
      failing = static_cast<std::uint8_t>(i + 1);
  }
  if (request.api == Api::operator_new) t_new.failed = failing;
  return failing;
}

session::StringId rule_text(InHook hook, std::uint8_t rule) noexcept {
  return rule == 0 ? 0 : g_session.add_string(hook, g_injection.rules.rules[rule - 1].text);
}

void reset_fault_injection_after_fork() noexcept {
  if (!has_fault_rules()) return;
  for (unsigned i = 0; i < g_injection.rules.count; ++i)
    g_injection.calls[i].start(g_injection.rules.rules[i]);
  for (auto& cached : g_injection.cache) cached.store(0, std::memory_order_relaxed);
  t_new = {};
}

namespace {

using options::InjectionRule;
using session::TableId;

[[gnu::noinline]] bool is_line(const session::View& view, const InjectionRule& rule,
                               std::uint64_t frame) noexcept {
  session::Code code{};
  if (!view.read(TableId::codes, session::code_of(frame), code) ||
      !options::is_file(view.string(code.file), rule.file)) {
    return false;
  }
  return text::line_of(view, code, frame) == rule.line;
}

// The module is on this thread's stack, so its memory can be read.
[[gnu::noinline]] bool is_function(InHook hook, const session::View& view,
                                   const InjectionRule& rule, std::uint64_t frame) noexcept {
  session::Module module{};
  const std::uint32_t id = session::module_of(frame);
  if (id == 0 || !view.read(TableId::modules, id, module) ||
      !options::is_module(view.string(module.path), rule.module)) {
    return false;
  }
  symbols::ElfSymbols symbols{hook, module.start};
  std::uint64_t bytes = 0;
  const std::uint64_t start = symbols.address_of(hook, rule.function, &bytes);
  // A return address belongs to the call before it.
  const std::uint64_t pc =
      module.base + session::offset_of(frame) - (session::is_exact(frame) ? 0 : 1);
  return start != 0 && pc >= start && pc - start < std::max<std::uint64_t>(bytes, 1);
}

}  // namespace

[[gnu::noinline]] bool is_site_on_stack(InHook hook, const InjectionRule& rule,
                                        std::uint32_t node) noexcept {
  const session::View view = session::g_session.view();
  bool found = false;
  view.walk(node, [&](std::uint64_t frame) {
    if (found) return;
    if (rule.line != 0)
      found = session::has_code(frame) && is_line(view, rule, frame);
    else if (session::kind_of(frame) == session::FrameKind::native)
      found = is_function(hook, view, rule, frame);
  });
  return found;
}

}  // namespace oomrec::recorder
