// Where the texts of an exception are kept while the helper writes them: the program may have freed
// its own by then. Mapped at start, touched when it is first used.
#pragma once

#include <algorithm>
#include <cstring>

#include "common/text/exception_texts.h"
#include "common/text/json_check.h"

namespace oomrec::helper {

class TextSpace {
 public:
  // Copies what there is room for. False: metadata or objects are no JSON (an object, any value),
  // or too long; they are left out.
  bool copy(const text::ExceptionTexts& given) noexcept {
    texts_.type = cut(type_, given.type);
    texts_.module = cut(module_, given.module);
    texts_.context = cut(context_, given.context);
    texts_.message = cut(message_, given.message);
    texts_.traceback = cut(traceback_, given.traceback);
    texts_.backend = given.backend;
    const bool has_metadata = json(metadata_, given.metadata, texts_.metadata, true);
    const bool has_objects = json(objects_, given.objects, texts_.objects, false);
    return has_metadata && has_objects;
  }
  const text::ExceptionTexts& texts() const noexcept { return texts_; }

  char path[4096 + 128];  // of the bundle that gets them

 private:
  template <std::size_t N>
  static std::string_view cut(char (&to)[N], std::string_view text) noexcept {
    if (text.data() == nullptr) return {};
    const std::size_t bytes = std::min(text.size(), N);
    std::memcpy(to, text.data(), bytes);
    return {to, bytes};
  }

  // Checked as it stands in our copy: the program's may change meanwhile.
  template <std::size_t N>
  static bool json(char (&to)[N], std::string_view text, std::string_view& out,
                   bool object) noexcept {
    out = {};
    if (text.data() == nullptr) return true;
    if (text.size() > N) return false;
    std::memcpy(to, text.data(), text.size());
    const text::JsonKind kind = text::check_json({to, text.size()});
    if (kind == text::JsonKind::none || (object && kind != text::JsonKind::object)) return false;
    out = {to, text.size()};
    return true;
  }

  text::ExceptionTexts texts_;
  char type_[text::kMostNameBytes];
  char module_[text::kMostNameBytes];
  char context_[text::kMostNameBytes];
  char message_[text::kMostTextBytes];
  char traceback_[text::kMostTextBytes];
  char metadata_[text::kMostTextBytes];
  char objects_[text::kMostObjectsBytes];
};

}  // namespace oomrec::helper
