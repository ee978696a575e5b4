#include "tools/views/export/pickle_writer.h"

namespace oomrec::tools::views {
namespace {

// Opcodes, by Python's names (Lib/pickle.py).
constexpr char BININT1 = 'K', BININT2 = 'M', BININT = 'J', LONG1 = '\x8a', BINUNICODE = 'X',
               BINPUT = 'q', LONG_BINPUT = 'r', BINGET = 'h', LONG_BINGET = 'j', TUPLE2 = '\x86';

}  // namespace

// The argument is little-endian.
void PickleWriter::code(char opcode, std::uint64_t argument, std::size_t bytes) {
  char text[9] = {opcode};
  for (std::size_t i = 0; i < bytes; ++i) text[1 + i] = static_cast<char>(argument >> (8 * i));
  output_.write({text, 1 + bytes});
}

void PickleWriter::number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (bits <= 0xff) return code(BININT1, bits, 1);
  if (bits <= 0xffff) return code(BININT2, bits, 2);
  if (value == static_cast<std::int32_t>(value)) return code(BININT, bits, 4);
  output_.write({&LONG1, 1});
  code(8, bits, 8);  // the length, then the bytes
}

void PickleWriter::text(std::string_view value) {
  const auto [at, is_new] = texts_.try_emplace(std::string{value}, memo_size_);
  if (!is_new) return get(at->second);
  code(BINUNICODE, value.size(), 4);
  output_.write(value);
  memoize();
}

void PickleWriter::pair(std::int64_t first, std::int64_t second) {
  number(first);
  number(second);
  output_.write({&TUPLE2, 1});
}

PickleWriter::Reference PickleWriter::memoize() {
  memo_size_ <= 0xff ? code(BINPUT, memo_size_, 1) : code(LONG_BINPUT, memo_size_, 4);
  return memo_size_++;
}

void PickleWriter::get(Reference reference) {
  reference <= 0xff ? code(BINGET, reference, 1) : code(LONG_BINGET, reference, 4);
}

}  // namespace oomrec::tools::views
