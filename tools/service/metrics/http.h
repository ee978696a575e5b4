// As much of HTTP as a scrape needs: a request's first line, and an answer after which the
// connection is closed. Who asks may be anybody: nothing but that line is looked at.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace oomrec::tools::service {

inline constexpr std::size_t kMostRequestBytes = 64 * 1024;

// Whether `received` holds a request's head, or is too long to become one.
bool is_whole_request(std::string_view received);

using Page = std::shared_ptr<const std::string>;  // many may be sent the same one at a time

struct Answer {
  std::string head;
  Page body;  // null: none, as to HEAD
};

// The answer to `received`, a whole request. `metrics` is made only when it is asked for;
// `by_prometheus`: who asks goes on asking, and compares.
Answer answer_to(std::string_view received, const std::function<Page(bool by_prometheus)>& metrics);

}  // namespace oomrec::tools::service
