// One random change after another of an input, as fuzzers make them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace oomrec::fuzz {

class Mutator {
 public:
  Mutator(std::uint64_t seed, std::span<const std::string> corpus,
          std::span<const std::string_view> tokens)
      : random_(seed), corpus_(corpus), tokens_(tokens) {}

  // An input of the corpus after one to eight changes.
  std::string next() {
    std::string input = corpus_[below(corpus_.size())];
    for (std::uint64_t changes = 1 + below(8); changes != 0; --changes) change(input);
    input.resize(std::min(input.size(), kMostBytes));
    return input;
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }
  // Small ones are the most frequent: most faults are in a few bytes.
  std::size_t length(std::size_t most) {
    return below(std::min<std::size_t>(most, std::size_t{1} << below(12)) + 1);
  }
  // A place in the input. Half of all are near its start, where headers are.
  std::size_t place(const std::string& input) {
    return below(below(2) == 0 ? std::min<std::size_t>(input.size(), 4096) : input.size());
  }

  void change(std::string& input) {
    const std::size_t at = place(input);
    switch (below(8)) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ 1 << below(8));
        return;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(random_());
        return;
      case 2:
        return write_number(input, at);
      case 3:
        input.erase(at, length(input.size() - at));
        return;
      case 4:  // a duplicated piece
        input.insert(at, input.substr(place(input), length(input.size())));
        return;
      case 5: {  // a piece of another input
        const std::string& other = corpus_[below(corpus_.size())];
        input.replace(at, length(input.size() - at),
                      other.substr(place(other), length(other.size())));
        return;
      }
      case 6:
        if (!tokens_.empty()) input.insert(at, tokens_[below(tokens_.size())]);
        return;
      default:
        if (below(8) == 0) input.resize(at);
    }
  }

  void write_number(std::string& input, std::size_t at) {
    static constexpr auto kNumbers = std::to_array<std::uint64_t>(
        {0, 1, 7, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x10000, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff,
         0x1'0000'0000, 0x7fff'ffff'ffff'ffff, 0x8000'0000'0000'0000, ~std::uint64_t{0}});
    const std::uint64_t number =
        below(4) == 0 ? input.size() : kNumbers[below(kNumbers.size())] + below(3) - 1;
    const std::size_t bytes = std::min(std::size_t{1} << below(4), input.size() - at);
    std::memcpy(input.data() + at, &number, bytes);
  }

  std::mt19937_64 random_;
  std::span<const std::string> corpus_;
  std::span<const std::string_view> tokens_;
};

}  // namespace oomrec::fuzz
