// Reports that a condition began once, although its figure hovers at the threshold.
#pragma once

#include <set>

namespace oomrec::tools {

template <class Key>
class Hysteresis {
 public:
  // True if the condition of `key` holds and began just now. `has_ended`: the figure is far enough
  // from its threshold for the next one to count as a new beginning; never true while it holds.
  bool begins(const Key& key, bool holds, bool has_ended) {
    if (has_ended) active_.erase(key);
    return holds && active_.insert(key).second;
  }

  void forget(const Key& key) { active_.erase(key); }

 private:
  std::set<Key> active_;
};

}  // namespace oomrec::tools
