// "request" of metadata.json and of the commands: the failed request.
#pragma once

#include <concepts>
#include <string_view>

#include "common/facts/describe.h"
#include "common/facts/device.h"
#include "common/session/entries.h"
#include "common/session/functions.h"

namespace oomrec::facts {

// Further requests that failed because the reported one had.
struct Aftershocks {
  std::uint64_t count = 0;
  std::uint64_t last_after_ms = 0;  // between the request and the last of them
};

template <>
struct Section<Aftershocks> {
  static constexpr std::string_view key = "aftershocks";
  static constexpr std::string_view meaning =
      "[further failures](deaths.md#one-bundle-for-one-failure) that the request brought about";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& aftershocks) {
    v.field("count", aftershocks.count, "counted when the outcome is completed, as `repeats` are");
    v.field("last_after_ms", known_if(aftershocks.count != 0, aftershocks.last_after_ms),
            "between the request and the last of them");
  }
};

template <>
struct Section<session::Thread> {
  static constexpr std::string_view key = "thread";
  static constexpr std::string_view meaning = "the thread in which it happened";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& thread) {
    v.field("tid", known_if(thread.tid != 0, thread.tid), "its number; `null` if it is unknown");
    v.field("name", Name{thread.name}, "the program's name for it");
  }
};

// What is counted on after the bundle is written.
struct RequestCounts {
  std::uint64_t repeats = 0;
  Aftershocks aftershocks;
};

inline constexpr std::string_view kRepeatsKey = "repeats";

template <>
struct Section<RequestCounts> {
  static constexpr std::string_view key = "request";
  static constexpr std::string_view meaning = "the request that failed; `null` if none did";
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, auto& counts) {
    v.field(kRepeatsKey, counts.repeats,
            "how often the same stack failed again, counted when the outcome is completed: 10 s "
            "after the bundle, or at the process' end if that was sooner or by a signal. Before "
            "that, and in all but the last bundle of a process, the count when the bundle was "
            "written");
    v.section(counts.aftershocks);
  }
};

// The stack has a function write(json).
template <class StackOfFrames>
struct Request {
  using Stack = StackOfFrames;

  const session::Failure& failure;
  const session::Thread& thread;
  std::string_view error;  // empty: none
  RequestCounts counts;
  Stack stack;
};
// In a bundle's file …
template <class Stack>
struct StoredRequest : Request<Stack> {
  bool has_device;
  const session::Device& device;
};
// … and as the commands print it.
template <class Stack>
struct ShownRequest : Request<Stack> {
  std::string_view device_label;  // empty: none
};

template <class Fact>
requires std::derived_from<Fact, Request<typename Fact::Stack>>
struct Section<Fact> {
  static constexpr std::string_view key = Section<RequestCounts>::key;
  static constexpr std::string_view meaning = Section<RequestCounts>::meaning;
  static constexpr JsonLayout layout = JsonLayout::lines;

  static void describe(auto& v, const Fact& request) {
    const session::Failure& failure = request.failure;
    v.field("api", name_of(static_cast<Api>(failure.api)), "the function");
    v.field("size", failure.bytes, "in bytes");
    v.field("space", named(failure.space, kSpaceNames), "the kind of memory");
    if constexpr (requires { request.device_label; })
      v.field("device", known_if(!request.device_label.empty(), request.device_label),
              "one of `devices`; `null` for the host");
    v.field("error", known_if(!request.error.empty(), request.error),
            "its name; `torch.OutOfMemoryError` in a bundle, `null` elsewhere, if PyTorch failed "
            "without calling the driver");
    Section<RequestCounts>::describe(v, request.counts);
    v.section(request.thread);
    v.field("stack", request.stack, "where it was made");
    if constexpr (requires { request.device; }) {
      v.section_or_null(request.device, request.has_device);
      v.section_or_null(failure.device, request.has_device);
    }
  }
};

}  // namespace oomrec::facts
