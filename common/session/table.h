// Reads a table of a session entry by entry:
//
//   for (const auto& failure : session::entries<session::Failure>(view, TableId::failures))
#pragma once

#include <cstdint>
#include <iterator>

#include "common/session/view.h"

namespace oomrec::session {

// Copies of the entries that can be read, the first at number 1.
template <class T>
class Entries {
 public:
  Entries(const View& view, TableId table) noexcept
      : view_(view), table_(table), count_(view.count(table)) {
    next();
  }

  struct Iterator {
    Entries& all;

    T& operator*() const noexcept { return all.entry_; }
    void operator++() const noexcept { all.next(); }
    bool operator==(std::default_sentinel_t) const noexcept { return all.number_ >= all.count_; }
  };
  Iterator begin() noexcept { return {*this}; }
  std::default_sentinel_t end() const noexcept { return {}; }

 private:
  void next() noexcept {
    do ++number_;
    while (number_ < count_ && !view_.read(table_, number_, entry_));
  }

  const View& view_;
  const TableId table_;
  const std::uint64_t count_;
  std::uint64_t number_ = 0;
  T entry_{};
};

template <class T>
Entries<T> entries(const View& view, TableId table) noexcept {
  return {view, table};
}

}  // namespace oomrec::session
