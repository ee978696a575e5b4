// The texts of an exception on their way into a bundle: kept while the helper writes them, and put
// into a bundle that is there already.
#include "common/calls/calls.h"
#include "common/system/memory.h"
#include "recorder/helper/text_space.h"
#include "recorder/helper/writer_state.h"

namespace oomrec::helper {
namespace {

constinit TextSpace* g_texts = nullptr;
constinit bool g_texts_open = false;  // it is memory by now

// By whoever has the desk. nullptr: there is none to be had.
TextSpace* text_space() noexcept {
  if (g_texts != nullptr && !g_texts_open)
    g_texts_open = system::open_reserved(g_texts, sizeof(TextSpace));
  return g_texts_open ? g_texts : nullptr;
}

void write_texts(Desk& desk) noexcept {
  if (bundle::complete_texts(desk.hook, desk.texts_to, g_texts->texts(), desk.work))
    set_result(desk, bundle::Result::written);
}

}  // namespace

void prepare_texts() noexcept {
  g_texts = static_cast<TextSpace*>(system::reserve_private(sizeof(TextSpace)));
}

const text::ExceptionTexts* keep_texts(const text::ExceptionTexts& texts, bool& whole) noexcept {
  TextSpace* const space = text_space();
  whole = space != nullptr && space->copy(texts);
  return space != nullptr ? &space->texts() : nullptr;
}

bool complete_texts_of(InHook hook, std::uint64_t number, const text::ExceptionTexts& texts,
                       unsigned seconds) noexcept {
  const std::uint64_t deadline = calls::monotonic_ns() + seconds * kSecond;
  Desk* const desk = claim_desk(hook, deadline);
  if (desk == nullptr) return false;
  TextSpace* const space = text_space();
  const auto is_known = [&]() noexcept {
    text::Text path{space->path};
    return !place_of(*desk, number, path).empty();
  };
  if (space == nullptr || !is_known()) {
    helper::release();
    return false;
  }
  const bool whole = space->copy(texts);
  desk->texts_to = space->path;
  const std::uint32_t ticket = take_ticket(*desk);
  const long pid = run_errand(*desk, write_texts);
  if (pid > 0) helper::wait_for(pid, true, deadline);
  return whole && result_of(*desk, ticket) == bundle::Result::written;
}

}  // namespace oomrec::helper
