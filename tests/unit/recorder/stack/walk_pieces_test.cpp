// Pieces of walks: what they share, and what happens when the oldest are overwritten.
#include "recorder/stack/walk_pieces.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

using namespace oomrec::stack;

namespace {

// A stack of words, and cells that have read them.
class Words {
 public:
  explicit Words(std::size_t count) : words_(count) {
    for (std::uint64_t& word : words_) {
      word = 0x1000 + static_cast<std::uint64_t>(&word - words_.data());
      cells_.push_back({reinterpret_cast<std::uint64_t>(&word), word});
    }
  }
  const Cell* cells() const { return cells_.data(); }
  std::uint32_t count() const { return static_cast<std::uint32_t>(cells_.size()); }
  std::uint64_t& operator[](std::size_t at) { return words_[at]; }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<Cell> cells_;
};

PieceCell add(WalkPieces& pieces, const Words& words, const PieceCell& outer = {}) {
  return pieces.add(words.cells(), words.count(), outer);
}

bool is_unchanged(const PieceCell& at) { return change_of(at) == kNothing; }

constexpr std::uint32_t kPieces = 384, kCells = 4096;

struct Fixture {
  std::unique_ptr<PieceMemory<kPieces, kCells>> memory =
      std::make_unique<PieceMemory<kPieces, kCells>>();
  std::unique_ptr<WalkPieces> pieces = std::make_unique<WalkPieces>();
  Fixture() { pieces->use(*memory); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a walk is unchanged if each of its cells is, in each of its pieces") {
  Words outer(5), inner(3), alone(7);
  const PieceCell whole = add(*pieces, outer);
  PieceCell middle = whole;
  middle.cell += 2;  // its two innermost cells are another walk's
  const PieceCell joined = add(*pieces, inner, middle);
  const PieceCell other = add(*pieces, alone);
  CHECK(is_unchanged(whole));
  CHECK(is_unchanged(joined));
  CHECK(joined.piece->length == 2);

  outer[1] += 1;
  CHECK_FALSE(is_unchanged(whole));
  CHECK(is_unchanged(joined));
  for (const std::size_t changed : {2U, 3U, 4U}) {
    outer[changed] += 1;
    CHECK_FALSE(is_unchanged(joined));
    outer[changed] -= 1;
  }
  for (const std::size_t changed : {0U, 1U, 2U}) {
    inner[changed] += 1;
    CHECK_FALSE(is_unchanged(joined));
    inner[changed] -= 1;
  }
  CHECK(is_unchanged(joined));
  CHECK(is_unchanged(other));
}

TEST_CASE_FIXTURE(Fixture, "a piece without cells of its own is that where it goes on") {
  Words outer(4), none(0);
  const PieceCell joined = add(*pieces, none, add(*pieces, outer));
  CHECK(is_unchanged(joined));
  outer[3] += 1;
  CHECK_FALSE(is_unchanged(joined));
}

TEST_CASE_FIXTURE(Fixture, "what was overwritten is no longer unchanged, nor what goes on there") {
  Words root(10), small(1), large(WalkPieces::kMostCells);
  const PieceCell first = add(*pieces, root);
  std::vector<PieceCell> made;
  SUBCASE("by many pieces") {
    for (std::uint32_t i = 0; i + 1 < kPieces; ++i) made.push_back(add(*pieces, small, first));
    CHECK(is_unchanged(first));
    made.push_back(add(*pieces, small, first));
    CHECK_FALSE(is_unchanged(first));
    CHECK_FALSE(is_unchanged(made.front()));
    CHECK_FALSE(is_unchanged(made.back()));
    CHECK(made.front().valid());
  }
  SUBCASE("by large pieces") {
    for (std::uint32_t cells = 0; cells < kCells; cells += WalkPieces::kMostCells + 1)
      made.push_back(add(*pieces, large));
    CHECK_FALSE(is_unchanged(first));
    CHECK(is_unchanged(made.back()));
  }
  SUBCASE("by other memory") {
    made.push_back(add(*pieces, small, first));
    const auto larger = std::make_unique<PieceMemory<2 * kPieces, 2 * kCells>>();
    pieces->use(*larger);
    CHECK_FALSE(is_unchanged(first));
    CHECK_FALSE(is_unchanged(made.back()));
    for (std::uint32_t i = 0; i < 2 * kPieces; ++i) made.push_back(add(*pieces, small));
    CHECK(is_unchanged(made[1]));
    add(*pieces, small);
    CHECK_FALSE(is_unchanged(made[1]));
    CHECK(is_unchanged(made[2]));
  }
  SUBCASE("by clear()") {
    made.push_back(add(*pieces, small, first));
    pieces->clear();
    CHECK_FALSE(is_unchanged(first));
    CHECK_FALSE(is_unchanged(made.back()));
    CHECK(is_unchanged(add(*pieces, small)));
  }
}

TEST_CASE_FIXTURE(Fixture, "every piece is either whole or known to be overwritten") {
  std::uint32_t random = 1;
  struct Made {
    std::unique_ptr<Words> words;
    PieceCell cell;
  };
  std::vector<Made> made;
  for (int i = 0; i < 20'000; ++i) {
    random = random * 1103515245u + 12345u;
    const std::uint32_t count = (random >> 16) % (i % 100 == 0 ? WalkPieces::kMostCells : 40);
    made.push_back({std::make_unique<Words>(count), {}});
    made.back().cell = add(*pieces, *made.back().words);
    if (made.size() > 600) made.erase(made.begin());
    std::size_t valid = 0;
    bool older_is_valid = false, in_order = true;
    for (const Made& one : made) {
      const bool is_valid = one.cell.valid();
      in_order = in_order && (is_valid || !older_is_valid);
      older_is_valid = is_valid;
      if (!is_valid) continue;
      ++valid;
      if (one.words->count() != 0 && i % 50 == 0) {
        CHECK(is_unchanged(one.cell));
        CHECK(one.cell.cell->address == one.words->cells()->address);
      }
    }
    REQUIRE(in_order);
    REQUIRE(valid > 0);
  }
}
