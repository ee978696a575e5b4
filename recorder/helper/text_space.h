// Copies of an exception's texts for the helper: the program may free its own while the helper
// writes them. Reserved at start, made accessible at first use; the space for objects, which few
// programs give, is mapped at their first use.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "common/system/memory.h"
#include "common/text/exception_texts.h"
#include "common/text/json_check.h"

namespace oomrec::helper {

class TextSpace {
 public:
  // Copies what fits. False: metadata (which must be a JSON object) or objects (any JSON value) are
  // not JSON or too long, or there is no memory for them, and they are left out.
  bool copy(const text::ExceptionTexts& given) noexcept {
    texts_.type = cut(type_, given.type);
    texts_.module = cut(module_, given.module);
    texts_.context = cut(context_, given.context);
    texts_.message = cut(message_, given.message);
    texts_.traceback = cut(traceback_, given.traceback);
    texts_.backend = given.backend;
    const auto is_object = [](text::JsonKind kind) { return kind == text::JsonKind::object; };
    const auto is_json = [](text::JsonKind kind) { return kind != text::JsonKind::none; };
    const bool has_metadata = copy_if(is_object, metadata_, given.metadata, texts_.metadata);
    if (objects_ == nullptr && given.objects.data() != nullptr)
      objects_ = static_cast<char*>(system::map_private(text::kMaxObjectsBytes));
    const std::span<char> objects{objects_, objects_ == nullptr ? 0 : text::kMaxObjectsBytes};
    const bool has_objects = copy_if(is_json, objects, given.objects, texts_.objects);
    return has_metadata && has_objects;
  }
  const text::ExceptionTexts& texts() const noexcept { return texts_; }

  char path[4096 + 128];  // of the bundle that they go to

 private:
  template <std::size_t N>
  static std::string_view cut(char (&to)[N], std::string_view text) noexcept {
    if (text.data() == nullptr) return {};
    const std::size_t bytes = std::min(text.size(), N);
    std::memcpy(to, text.data(), bytes);
    return {to, bytes};
  }

  // Checks our copy, not the program's text: that may change meanwhile.
  template <class Accepts>
  static bool copy_if(Accepts accepts, std::span<char> to, std::string_view text,
                      std::string_view& out) noexcept {
    out = {};
    if (text.data() == nullptr) return true;
    if (text.size() > to.size()) return false;
    std::memcpy(to.data(), text.data(), text.size());
    if (!accepts(text::check_json({to.data(), text.size()}))) return false;
    out = {to.data(), text.size()};
    return true;
  }

  text::ExceptionTexts texts_;
  char type_[text::kMaxNameBytes];
  char module_[text::kMaxNameBytes];
  char context_[text::kMaxNameBytes];
  char message_[text::kMaxTextBytes];
  char traceback_[text::kMaxTextBytes];
  char metadata_[text::kMaxTextBytes];
  char* objects_;  // of kMaxObjectsBytes; null: not mapped
};

}  // namespace oomrec::helper
