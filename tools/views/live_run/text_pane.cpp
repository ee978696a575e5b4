#include "tools/views/live_run/text_pane.h"

#include <algorithm>
#include <utility>

#include "common/text/text.h"
#include "tools/base/text.h"
#include "tools/views/screen/chooser.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kMostLines = 500;
constexpr std::size_t kMostColumns = 1000;
constexpr std::size_t kMostParameters = 32;  // bytes
constexpr std::size_t kMostMoves = 9999;
constexpr std::size_t kTab = 8;
constexpr char32_t kUnknown = 0xfffd;

bool is_c1_control(char32_t code) { return code >= 0x80 && code < 0xa0; }

}  // namespace

void TextPane::print(std::string_view bytes) {
  for (const char byte : bytes) feed(byte);
}

void TextPane::feed(char byte) {
  switch (state_) {
    case State::text:
      return feed_text(byte);
    case State::escape:
      parameters_.clear();
      // CSI begins a control sequence. OSC, DCS, SOS, PM and APC begin a string that ends with BEL
      // or ESC \. Other sequences have two bytes.
      state_ = byte == '['                                                      ? State::control
               : std::string_view{"]PX^_"}.find(byte) != std::string_view::npos ? State::string
                                                                                : State::text;
      return;
    case State::control:
      if (byte >= 0x40 && byte <= 0x7e) {
        state_ = State::text;
        apply_control(byte);
      } else if (byte == 0x1b) {
        state_ = State::escape;
      } else if (parameters_.size() < kMostParameters) {
        parameters_ += byte;
      }
      return;
    case State::string:
      if (byte == '\a') state_ = State::text;
      if (byte == 0x1b) state_ = State::string_escape;
      return;
    case State::string_escape:
      state_ = byte == '\\' ? State::text : State::string;
      return;
  }
}

void TextPane::feed_text(char byte) {
  const bool follows = !unfinished_.empty();
  unfinished_ += byte;
  if (is_cut_character(unfinished_)) return;
  const std::string sequence = std::exchange(unfinished_, {});
  if (text::utf8_bytes(sequence) == 0) {
    put(kUnknown);
    return follows ? feed_text(byte) : void();
  }
  switch (byte) {
    case 0x1b:
      state_ = State::escape;
      return;
    case '\n':
      return move_to_row(row_ + 1);
    case '\r':
      column_ = 0;
      return;
    case '\b':
      column_ -= column_ != 0;
      return;
    case '\t':
      column_ = std::min((column_ / kTab + 1) * kTab, kMostColumns);
      return;
    default:
      break;
  }
  const char32_t code = text::code_point(sequence);
  if (code < 0x20 || code == 0x7f) return;
  put(is_c1_control(code) ? kUnknown : code);
}

void TextPane::put(char32_t character) {
  if (column_ >= kMostColumns) return;
  std::u32string& line = lines_[row_];
  if (line.size() <= column_) line.resize(column_ + 1, U' ');
  line[column_++] = character;
}

void TextPane::move_to_row(std::size_t row) {
  while (row >= lines_.size()) lines_.emplace_back();
  row_ = row;
  while (lines_.size() > kMostLines) {
    lines_.pop_front();
    row_ -= row_ != 0;
  }
}

void TextPane::apply_control(char final) {
  std::string_view parameters = parameters_;
  const std::size_t first = std::min(take_number<std::size_t>(parameters).value_or(0), kMostMoves);
  const std::size_t by = std::max<std::size_t>(first, 1);
  std::u32string& line = lines_[row_];
  switch (final) {
    case 'A':
      return move_to_row(row_ - std::min(row_, by));
    case 'B':
      return move_to_row(std::min(row_ + by, lines_.size() - 1));
    case 'C':
      column_ = std::min(column_ + by, kMostColumns);
      return;
    case 'D':
      column_ -= std::min(column_, by);
      return;
    case 'G':
      column_ = std::min(by - 1, kMostColumns);
      return;
    case 'J':
      if (first >= 2) {  // clear the screen: continue below the existing lines
        move_to_row(lines_.size());
        column_ = 0;
      } else {
        lines_.resize(row_ + 1);
        lines_[row_].resize(std::min(lines_[row_].size(), column_));
      }
      return;
    case 'K':
      if (first == 0)
        line.resize(std::min(line.size(), column_));
      else
        line.assign(first == 1 ? std::min(line.size(), column_) : 0, U' ');
      return;
    default:
      return;
  }
}

std::vector<Line> TextPane::lines(std::size_t most) const {
  std::vector<Line> shown;
  std::size_t end = lines_.size();
  if (end > 1 && lines_.back().empty()) --end;  // the cursor is after the last newline
  for (std::size_t i = end > most ? end - most : 0; i < end; ++i) {
    std::string text;
    for (const char32_t character : lines_[i]) text += in_utf8(character);
    shown.emplace_back(std::move(text));
  }
  return shown;
}

}  // namespace oomrec::tools::views
