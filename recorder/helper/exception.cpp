// An exception's texts on their way into a bundle: copies them for the helper, and adds them to a
// bundle that is already written.
#include "common/calls/calls.h"
#include "common/system/memory.h"
#include "recorder/helper/text_space.h"
#include "recorder/helper/writer_state.h"

namespace oomrec::helper {
namespace {

constinit TextSpace* g_texts = nullptr;
constinit bool g_texts_open = false;  // made accessible

// Only with the claim. nullptr: no memory.
TextSpace* text_space() noexcept {
  if (g_texts != nullptr && !g_texts_open)
    g_texts_open = system::commit_reserved(g_texts, sizeof(TextSpace));
  return g_texts_open ? g_texts : nullptr;
}

void write_texts(WriterState& writer) noexcept {
  if (bundle::complete_exception(writer.hook, writer.texts_to, g_texts->texts(), writer.work))
    set_result(writer, bundle::Result::written);
}

}  // namespace

void reserve_texts() noexcept {
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
  WriterState* const writer = claim_writer(hook, deadline);
  if (writer == nullptr) return false;
  TextSpace* const space = text_space();
  const auto is_written = [&]() noexcept {
    text::Text path{space->path};
    return !bundle_path(*writer, number, path).empty();
  };
  if (space == nullptr || !is_written()) {
    helper::release();
    return false;
  }
  const bool whole = space->copy(texts);
  writer->texts_to = space->path;
  const std::uint32_t ticket = take_ticket(*writer);
  const long pid = run_task(*writer, write_texts);
  if (pid > 0) helper::wait_for(pid, Until::end, deadline);
  return whole && result_of(*writer, ticket) == bundle::Result::written;
}

}  // namespace oomrec::helper
