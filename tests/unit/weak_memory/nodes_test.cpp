// Threads that find nodes, and threads that forget them, meet without a lock: what a thread has
// found stays as it is while it uses it, and what it has left behind is seen.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "recorder/forget/shared_work.h"
#include "recorder/live/holder_sums.h"
#include "recorder/live/holder_table.h"
#include "recorder/python/codes.h"
#include "recorder/session/node_states.h"
#include "recorder/session/reuse.h"
#include "recorder/stack/frame_numbers.h"
#include "recorder/stack/intern.h"
#include "recorder/stack/uses_nodes.h"
#include "tests/unit/weak_memory/watched_session.h"

using namespace oomrec;
using session::g_era;
using session::g_node_states;
using session::g_session;
using session::NodeStates;
using stack::AnnouncedEra;
using weak_memory::kHook;

namespace {

constexpr auto relaxed = std::memory_order_relaxed;
constexpr std::uint32_t kFirstEra = 100;

// A session with the trie of recorder/stack, which is empty.
struct Trie {
  Trie() {
    weak_memory::watch_globals();
    g_era = kFirstEra;
    user = 0;
  }
  ~Trie() {  // before the next one watches what is mapped from then on
    stack::reset_nodes(kHook);
    stack::reset_codes(kHook);
  }
  Trie(const Trie&) = delete;
  Trie& operator=(const Trie&) = delete;

  weak_memory::WatchedSession session;
  static constinit inline AnnouncedEra user{0};
};

// The node of the stack with these frames, outermost first. 0: there is no room.
std::uint32_t find_or_add(const std::vector<std::uint64_t>& words) {
  std::vector<stack::MergedFrame> frames(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) frames[words.size() - 1 - i].word = words[i];
  return stack::intern(kHook, 0, 0, frames) == words.size() ? frames[0].node : 0;
}

// The words of a stack's frames, innermost first, as digits; as a thread of the process reads them.
std::string stack_of(std::uint32_t node) {
  std::string words;
  for (std::uint32_t at = node; at != 0;) {
    const session::Node entry = g_session.node(at);
    words += std::to_string(entry.frame);
    at = entry.parent < at ? entry.parent : 0;
  }
  return words;
}

// As a round does it; in a shortage of memory, if it was not found in this era.
enum class Memory { enough, short_of };
bool retire_if_idle(std::uint32_t node, Memory memory = Memory::enough) {
  const NodeStates::Word word = g_node_states.load(node);
  const std::uint32_t era = g_era.load(relaxed);
  if (memory == Memory::enough ? !NodeStates::is_idle(word, era)
                               : !NodeStates::is_unused(word, era))
    return false;
  stack::Retiring retiring{kHook};
  if (!retiring || !g_node_states.retire(node, word)) return false;
  retiring.use_again(node);
  return true;
}

// Begins a round. False: it has to wait for the thread.
bool begin_round() {
  return stack::use_of(Trie::user, stack::raise_era()) == stack::Use::none_or_now;
}

}  // namespace

TEST_CASE("a thread finds a stack whose node is retired, and used again for another one") {
  const Trie trie;
  const std::uint32_t other = find_or_add({1, 3});
  const std::uint32_t node = find_or_add({1, 2});
  REQUIRE((other != 0 && node != 0 && find_or_add({2}) != 0));  // so the frame stays
  g_era = kFirstEra + 2;                                        // all are idle
  // The first free number takes memory.
  REQUIRE((retire_if_idle(other) && find_or_add({1, 5}) == other));
  std::string found;
  std::uint32_t next = 0;
  bool retired = false;
  std::set<std::string> seen;
  const auto find = [&] { found = stack_of(find_or_add({1, 2})); };
  const auto forget = [&] {
    retired = retire_if_idle(node);
    if (retired) next = find_or_add({1, 4});
  };
  weak_memory::meet({find, forget}, [&] {
    CHECK(found == "21");
    if (!retired) CHECK(find_or_add({1, 2}) == node);
    seen.insert(!retired ? "kept" : next == node ? "used again" : "retired");
  });
  CHECK(seen == std::set<std::string>{"kept", "retired", "used again"});
}

TEST_CASE("a thread finds the holder of its stack, not that of one that is forgotten") {
  static live::HolderTable holders;
  const Trie trie;
  holders.reset(kHook);
  const std::uint32_t other = find_or_add({1, 3});
  const std::uint32_t node = find_or_add({1, 2});
  const std::uint32_t number = holders.find_or_add_brief(kHook, node, Space::heap, Api::malloc);
  REQUIRE((other != 0 && number != 0));
  REQUIRE(holders.add(kHook, number, {48, 48, 1, 1, 0}));
  g_era = kFirstEra + 2;
  REQUIRE(retire_if_idle(other));
  const auto allocate = [&](std::uint32_t at, std::uint64_t bytes) {
    const std::uint32_t of = holders.find_or_add_brief(kHook, at, Space::heap, Api::malloc);
    holders.add(kHook, of, {bytes, 0, 1, 0, 0});
  };
  const auto live_at = [&](std::uint32_t at) {
    return live::live_bytes_of(holders.find_or_add_brief(kHook, at, Space::heap, Api::malloc));
  };
  bool retired = false;
  std::set<std::string> seen;
  weak_memory::meet({[&] {
                       allocate(find_or_add({1, 2}), 2);
                     },
                     [&] {
                       const NodeStates::Word word = g_node_states.load(node);
                       retired = false;
                       if (!NodeStates::is_idle(word, g_era.load(relaxed)) ||
                           holders.of_node(node) == live::HolderTable::Has::needed)
                         return;
                       stack::Retiring retiring{kHook};
                       retired = g_node_states.retire(node, word);
                       if (!retired) return;
                       holders.remove(kHook, node, false,
                                      [](const live::HolderTable::Forgotten&) {});
                       retiring.use_again(node);
                     }},
                    [&] {
                      CHECK(live_at(find_or_add({1, 2})) == 2);
                      seen.insert(retired ? "retired" : "kept");
                    });
  CHECK(seen == std::set<std::string>{"kept", "retired"});
  holders.reset(kHook);
}

TEST_CASE("a reader that finds a live holder finds the stack, whose numbers were another one's") {
  static live::HolderTable holders;
  for (const bool killed : {false, true}) {
    const Trie trie;
    holders.reset(kHook);
    const std::uint32_t first = find_or_add({1, 3});
    find_or_add({1, 2});  // so that frame 2 is there
    const std::uint32_t holder = holders.find_or_add_brief(kHook, first, Space::heap, Api::malloc);
    g_era = kFirstEra + 2;
    REQUIRE((first != 0 && holder != 0));
    weak_memory::settle();
    weak_memory::write(1, [&] {
      holders.remove(kHook, first, false, [](const live::HolderTable::Forgotten&) {});
      REQUIRE(retire_if_idle(first));
    });
    weak_memory::write(2, [&] { REQUIRE(find_or_add({1, 4}) == first); });
    weak_memory::write(3, [&] {
      const std::uint32_t node = find_or_add({1, 4});
      REQUIRE(holders.find_or_add_brief(kHook, node, Space::heap, Api::calloc) == holder);
      REQUIRE(holders.add(kHook, holder, {48, 0, 1, 0, 0}));
    });
    std::set<std::string> seen;
    const auto read = [&] {
      const session::View view = g_session.view();
      session::Holder found;
      REQUIRE(view.read(session::TableId::holders, holder, found));
      if (found.live_bytes == 0) return;
      CHECK(found.node == first);
      std::string words;
      view.walk(found.node, [&](std::uint64_t word) { words += std::to_string(word); });
      seen.insert(words);
    };
    killed ? weak_memory::read_after_each_store(read) : weak_memory::read(read);
    CHECK(seen == std::set<std::string>{"41"});
    holders.reset(kHook);
  }
}

TEST_CASE("a node that a thread has found is not retired before the thread has left") {
  static constinit std::atomic<int> used{0};
  for (const Memory memory : {Memory::enough, Memory::short_of}) {
    const Trie trie;
    const std::uint32_t node = find_or_add({1, 2});
    REQUIRE(node != 0);
    std::string found;
    bool retired = false, saw_use = false;
    std::set<std::string> seen;
    const std::uint64_t ever = stack::nodes_ever();
    weak_memory::meet(
        {[&] {
           stack::UsesNodes uses;
           uses.begin(Trie::user);
           const std::uint32_t at = find_or_add({1, 2});
           found = stack_of(at);
           used.store(1, relaxed);
           uses.end();
         },
         [&] {
           retired = false;
           if (!begin_round() || (memory == Memory::enough && !begin_round())) return;
           saw_use = used.load(relaxed) != 0;
           retired = retire_if_idle(node, memory);
         }},
        [&] {
          CHECK(found == "21");
          const bool was_added = stack::nodes_ever() != ever;
          if (retired) CHECK((saw_use || was_added));
          seen.insert(retired ? saw_use ? "retired after" : "retired before" : "kept");
        });
    CHECK(seen == std::set<std::string>{"kept", "retired after", "retired before"});
  }
}

TEST_CASE("a round sees the node in a lane's sum, or the lane's thread the round's era") {
  static live::HolderTable holders;
  const Trie trie;
  holders.reset(kHook);
  const std::uint32_t node = find_or_add({1, 2});
  const std::uint32_t lane_number = g_session.acquire_lane(kHook, 1, 1);
  session::Lane& lane = g_session.lanes.at(lane_number);
  session::HolderSum& slot = g_session.sums(lane_number)[node & (lane.sums - 1)];
  live::HolderSums sums;
  sums.use(lane, g_session.sums(lane_number), g_session.temporaries(lane_number));
  REQUIRE(live::HolderSums::grow_at_once(kHook, holders, node, Api::malloc, 48));
  bool was_seen = false;
  std::set<bool> seen;
  weak_memory::meet({[&] { sums.shrink(kHook, holders, node, 48, false); },  // announces nothing
                     [&] {
                       begin_round();
                       was_seen = slot.node.load(std::memory_order_acquire) == node;
                     }},
                    [&] {
                      const NodeStates::Word word = g_node_states.load(node);
                      if (!was_seen) CHECK(!NodeStates::is_unused(word, kFirstEra + 1));
                      seen.insert(was_seen);
                    });
  CHECK(seen.size() == 2);
  holders.reset(kHook);
}

TEST_CASE("a round that no longer waits for a thread sees where the thread has left its node") {
  static constinit std::atomic<std::uint32_t> reference{0};  // as of a ring
  const Trie trie;
  const std::uint32_t node = find_or_add({1, 2});
  std::uint32_t era = 0, found = 0;
  bool waits = false;
  std::set<std::string> seen;
  weak_memory::meet({[&] {
                       stack::UsesNodes uses;
                       uses.begin(Trie::user);
                       era = Trie::user.load(relaxed);
                       reference.store(find_or_add({1, 2}), relaxed);
                       uses.end();
                     },
                     [&] {
                       waits = !begin_round();
                       found = reference.load(relaxed);
                     }},
                    [&] {
                      const bool is_of_now = era != kFirstEra;
                      if (!waits && !is_of_now) CHECK(found == node);
                      seen.insert(waits ? "waits" : is_of_now ? "later" : "before");
                    });
  CHECK(seen == std::set<std::string>{"waits", "later", "before"});
}

TEST_CASE("a thread that is given up knows it, or its node is frozen") {
  for (const std::string where : {"found", "in a free number", "in a new number"}) {
    const Trie trie;
    REQUIRE(find_or_add({1, 2}) != 0);
    const std::uint32_t other = find_or_add({1, 3});
    if (where == "in a free number") {
      g_era = kFirstEra + 2;
      REQUIRE(retire_if_idle(other));
    }
    const std::uint32_t first_era = g_era;
    const std::uint32_t expected = where == "found"              ? 2
                                   : where == "in a free number" ? other
                                                                 : other + 1;
    std::uint32_t node = 0;
    bool is_of_now = false, knows = false, gave_up = false;
    std::set<std::string> seen;
    weak_memory::meet({[&] {
                         stack::UsesNodes uses;
                         uses.begin(Trie::user);
                         is_of_now = (Trie::user.load(relaxed) & ~stack::kStalled) != first_era;
                         node = find_or_add({1, where == "found" ? 2u : 4u});
                         knows = stack::is_given_up(Trie::user);
                       },
                       [&] {
                         const std::uint32_t era = stack::raise_era();
                         gave_up = stack::use_of(Trie::user, era) == stack::Use::earlier &&
                                   stack::give_up(Trie::user, era);
                         if (!gave_up) return;
                         stack::await_adders(kHook);
                         if (expected < g_session.nodes.size())
                           g_node_states.set(expected, NodeStates::kFrozen);
                       }},
                      [&] {
                        REQUIRE(node == expected);
                        const bool is_frozen =
                            (g_node_states.load(node) & NodeStates::kFrozen) != 0;
                        // If it has announced the new era after that, the next round waits for it.
                        if (gave_up && !is_of_now) CHECK((knows || is_frozen));
                        seen.insert(!gave_up || is_of_now ? "not" : knows ? "knows" : "frozen");
                      });
    CHECK(seen == std::set<std::string>{"not", "knows", "frozen"});
  }
}

TEST_CASE("shared work ends when all have left, and what they did is seen") {
  static constinit recorder::SharedWork work;
  static constinit std::atomic<int> given{0}, done{0};
  const Trie trie;
  bool entered = false, ended = false;
  int found = 0;
  weak_memory::meet({[&] {
                       entered = work.enter();
                       if (!entered) return;
                       found = given.load(relaxed);
                       done.store(1, relaxed);
                       work.leave();
                     },
                     [&] {
                       given.store(1, relaxed);
                       work.open();
                       ended = work.close() && done.load(relaxed) == 0;
                     }},
                    [&] {
                      if (entered) CHECK((found == 1 && !ended));
                    });
}

TEST_CASE("a thread of an era knows the era of code objects that began before it") {
  const Trie trie;
  REQUIRE(stack::prepare_codes());
  const std::uint32_t before = stack::g_code_era;
  for (std::uint32_t line = 1; line <= 256; ++line)
    REQUIRE(stack::add_code(kHook, {"file", "name", {}, line}) != 0);
  std::uint32_t era = 0, era_of_codes = 0;
  std::set<std::uint32_t> seen;
  weak_memory::meet({[&] {
                       stack::UsesNodes uses;
                       uses.begin(Trie::user);
                       era = Trie::user.load(relaxed);
                       era_of_codes = stack::g_code_era.load(relaxed);
                       uses.end();
                     },
                     [&] {
                       stack::begin_forgetting_codes(false);
                       begin_round();
                     }},
                    [&] {
                      if (era != kFirstEra) CHECK(era_of_codes == before + 1);
                      seen.insert(era);
                    });
  CHECK(seen == std::set<std::uint32_t>{kFirstEra, kFirstEra + 1});
}

TEST_CASE("a reader finds the texts of a code object whose number and texts were another one's") {
  const Trie trie;
  REQUIRE(stack::prepare_codes());
  constexpr std::uint32_t kCodes = 256;
  const auto add = [](const char* file, std::uint32_t line) {
    return stack::add_code(kHook, {file, "name", {}, line});
  };
  for (std::uint32_t line = 1; line <= kCodes; ++line) REQUIRE(add("one.py", line) == line);
  REQUIRE(stack::begin_forgetting_codes(false));
  REQUIRE(find_or_add({7, 8}) != 0);
  for (const std::uint32_t line : {1, 2}) REQUIRE(add("one.py", line) == line);  // these are kept
  std::uint32_t at = 1;
  REQUIRE(stack::forget_codes(kHook, at, kCodes, 1));
  weak_memory::settle();
  std::uint32_t node = 0;
  weak_memory::write(1, [&] { REQUIRE(add("two.py", 9) == 3); });
  weak_memory::write(2, [&] {
    node = find_or_add({7, session::python_frame(add("two.py", 9), 0)});
    REQUIRE(node != 0);
  });
  std::set<std::string> seen;
  weak_memory::read([&] {
    const session::View view = g_session.view();
    session::Node found;
    if (!view.read(session::TableId::nodes, node, found) ||
        session::kind_of(found.frame) != session::FrameKind::python)
      return;
    session::Code code;
    REQUIRE(view.read(session::TableId::codes, session::code_of(found.frame), code));
    CHECK(code.first_line == 9);
    seen.insert(std::string{view.string(code.file)} + " " + std::string{view.string(code.name)});
  });
  CHECK(seen == std::set<std::string>{"two.py name"});
}
