#include "tools/bundles/signature/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/names/library_functions.h"
#include "common/text/frames.h"
#include "common/text/own_code.h"

namespace oomrec::tools::bundles {
namespace {

constexpr std::size_t kBuildIdDigits = 12;

std::string_view stem_of(std::string_view name) { return name.substr(0, name.find('.')); }

// Python before 3.11 has no qualified names, so classes and outer functions do not count. From 3.12
// on, comprehensions are part of the function that has them.
std::string_view python_name(std::string_view qualified) {
  constexpr std::array<std::string_view, 4> kInlined = {"<listcomp>", "<dictcomp>", "<setcomp>",
                                                        "<genexpr>"};
  const std::string_view name = qualified.substr(qualified.rfind('.') + 1);
  const bool is_inlined = std::ranges::find(kInlined, name) != kInlined.end();
  return is_inlined ? std::string_view{} : name;
}

// Of an inlined function debug information has the last name alone.
std::string_view native_name(std::string_view qualified) {
  const std::size_t scope = qualified.rfind("::");
  return scope == qualified.npos ? qualified : qualified.substr(scope + 2);
}

// A compiler that inlines it leaves no trace of the function that has it. "prog:operator()"
bool is_lambda(std::string_view key) { return key.ends_with(":operator()"); }

// "<ipython-input-3-5f0b1c>" has another number in each session.
std::string_view script_name(std::string_view file) {
  const std::string_view name = text::base_name(file);
  return name.starts_with("<ipython") ? "<ipython>" : name;
}

// Which functions of libraries a path may consist of, and not what every stack has.
bool is_library_frame(const Frame& frame) {
  if (frame.python) return !frame.file.starts_with("<frozen");
  if (frame.script) return true;
  return !frame.function.empty() && !frame.module.empty() && !text::is_plumbing(frame.module) &&
         !text::is_interpreter(frame.module) && !names::is_library_function(frame.function);
}

// The first frames, each key once, that belong.
template <class Belongs>
std::vector<std::size_t> first_frames(const Frames& frames, Belongs belongs) {
  std::vector<std::size_t> found;
  std::vector<std::string_view> keys;
  for (std::size_t i = 0; i < frames.size() && found.size() < kPathFrames; ++i) {
    if (!belongs(*frames[i])) continue;
    const std::string& key = frames[i]->key;
    if (key.empty() || std::ranges::find(keys, key) != keys.end()) continue;
    keys.push_back(key);
    found.push_back(i);
  }
  return found;
}

template <class Name>
std::string joined(const Frames& frames, std::size_t most, std::string_view separator,
                   Name name_of) {
  std::string text;
  for (const std::size_t i : path_of(frames)) {
    if (most-- == 0) break;
    if (!text.empty()) text += separator;
    text += name_of(*frames[i]);
  }
  return text;
}

}  // namespace

std::string frame_key(const Frame& frame) {
  if (frame.python || frame.script) {
    const std::string_view name =
        frame.python ? python_name(frame.function) : std::string_view{frame.function};
    if (name.empty() && !frame.function.empty()) return {};
    return fmt::format("{}:{}", script_name(frame.file), name.empty() ? "?" : name);
  }
  const std::string_view module = stem_of(frame.module);
  if (frame.function.empty()) {
    if (frame.module.empty()) return {};
    return fmt::format("{}@{}+{:#x}", module,
                       std::string_view{frame.build_id}.substr(0, kBuildIdDigits), frame.offset);
  }
  const std::string name{native_name(frame.function)};
  // Every program has one.
  if (name == "main" || name == "operator()")
    return fmt::format("{}:{}", frame.file.empty() ? module : stem_of(text::base_name(frame.file)),
                       name);
  return frame.own ? name : fmt::format("{}:{}", module, name);
}

std::shared_ptr<const Frame> with_key(Frame frame) {
  frame.key = frame_key(frame);
  return std::make_shared<const Frame>(std::move(frame));
}

std::vector<std::size_t> path_of(const Frames& frames) {
  std::vector<std::size_t> path;
  for (const bool lambdas : {false, true}) {
    if (!path.empty()) break;
    path = first_frames(
        frames, [&](const Frame& frame) { return frame.own && is_lambda(frame.key) == lambdas; });
  }
  for (const bool python : {true, false}) {
    if (!path.empty()) break;
    path = first_frames(frames, [&](const Frame& frame) {
      return frame.python == python && is_library_frame(frame);
    });
  }
  return path;
}

std::string path_key(const Frames& frames, std::size_t most) {
  return joined(frames, most, kPathSeparator, [](const Frame& frame) { return frame.key; });
}

std::string path_title(const Frames& frames) {
  return joined(frames, kPathFrames, " ← ", [](const Frame& frame) {
    const std::string& key = frame.key;
    const bool has_file = frame.python || frame.script || frame.file.empty();
    if (has_file || key.find(':') < key.find("::")) return key;
    return fmt::format("{}:{}", text::base_name(frame.file), key);
  });
}

}  // namespace oomrec::tools::bundles
