#include "recorder/injection.h"

#include "common/options/fault_rules.h"
#include "recorder/injection_site.h"
#include "recorder/live/index.h"
#include "recorder/session/writer.h"
#include "recorder/stack/stack.h"
#include "recorder/state.h"
#include "recorder/threads.h"

namespace oomrec::recorder {

using options::InjectionRule;
using session::g_session;

namespace {

// Which rules have their site on a stack: the node in the high half, a bit for each rule in the
// low.
constexpr std::size_t kKnownStacks = 4096;
static_assert(options::kMaxRules <= 32);

struct Injection {
  options::InjectionRules rules;
  options::RuleCalls calls[options::kMaxRules];
  bool has_site = false;
  bool concerns_heap = false;
  std::atomic<std::uint64_t> known[kKnownStacks] = {};
};
constinit Injection g_injection;

// Of an `operator new` on this thread.
struct NewCalls {
  bool announced;        // the next request of the heap is its
  std::uint8_t refused;  // the rule that refused the latest one that had no library yet
  std::uint8_t again;    // that rule, for the library's own, which asks again
  bool paused;           // what is asked for meanwhile is asked by us
};
[[gnu::tls_model("initial-exec")]] constinit thread_local NewCalls t_new{};

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
  const std::uint32_t node = stack::capture(hook, thread->stacks, thread->root(hook));
  std::atomic<std::uint64_t>& known = g_injection.known[live::mix(node) % kKnownStacks];
  const std::uint64_t word = known.load(std::memory_order_relaxed);
  if (word >> 32 == node && node != 0) return static_cast<std::uint32_t>(word);
  const std::uint32_t found = find_sites(hook, node);
  known.store(std::uint64_t{node} << 32 | found, std::memory_order_relaxed);
  return found;
}

}  // namespace

void start_injection(const char* text) noexcept {
  Injection& injection = g_injection;
  if (!options::parse_rules(text, injection.rules)) injection.rules.count = 0;
  for (unsigned i = 0; i < injection.rules.count; ++i) {
    const InjectionRule& rule = injection.rules.rules[i];
    injection.has_site = injection.has_site || rule.has_site();
    injection.concerns_heap = injection.concerns_heap || rule.concerns_heap();
  }
  restart_injection();
}

bool injects() noexcept { return g_injection.rules.count != 0; }
bool injects_into_heap() noexcept { return g_injection.concerns_heap; }

bool injects_into_new() noexcept {
  for (unsigned i = 0; i < g_injection.rules.count; ++i)
    if (g_injection.rules.rules[i].api == Api::operator_new) return true;
  return false;
}

void announce_new() noexcept { t_new.announced = true; }
void refuse_new_again() noexcept { t_new.again = t_new.refused; }
void pause_injection(bool paused) noexcept { t_new.paused = paused; }

std::uint8_t refusing_rule(InHook hook, const Request& request) noexcept {
  if (!injects() || t_new.paused) return 0;
  bool by_new = false;
  if (request.space == Space::heap) {
    const NewCalls asked = t_new;
    t_new.announced = false;
    t_new.again = 0;
    if (asked.again != 0) {
      if (request.api == Api::operator_new) t_new.refused = asked.again;  // it has a library, too
      return asked.again;
    }
    by_new = asked.announced;
  }
  const std::uint32_t sites = g_injection.has_site ? sites_here(hook) : 0;
  std::uint8_t refusing = 0;
  for (unsigned i = 0; i < g_injection.rules.count; ++i) {
    const InjectionRule& rule = g_injection.rules.rules[i];
    if (!rule.fits(request.api, request.space, request.bytes, by_new)) continue;
    if (rule.has_site() && (sites >> i & 1) == 0) continue;
    if (g_injection.calls[i].refuses(rule) && refusing == 0)
      refusing = static_cast<std::uint8_t>(i + 1);
  }
  if (request.api == Api::operator_new) t_new.refused = refusing;
  return refusing;
}

session::StringId rule_text(InHook hook, std::uint8_t rule) noexcept {
  return rule == 0 ? 0 : g_session.add_string(hook, g_injection.rules.rules[rule - 1].text);
}

void restart_injection() noexcept {
  if (!injects()) return;
  for (unsigned i = 0; i < g_injection.rules.count; ++i)
    g_injection.calls[i].start(g_injection.rules.rules[i]);
  for (auto& known : g_injection.known) known.store(0, std::memory_order_relaxed);
  t_new = {};
}

}  // namespace oomrec::recorder
