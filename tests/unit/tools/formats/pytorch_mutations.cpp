// Fuzzes the import of a PyTorch snapshot with random damage: mutations FILE ROUNDS. Each round
// must give a readable session or a PickleError.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "tools/formats/pytorch/pickle_reader.h"
#include "tools/formats/pytorch/snapshot.h"

using namespace oomrec;
using namespace oomrec::tools;

namespace {

std::string damaged(const std::string& whole, std::mt19937_64& random) {
  std::string bytes = whole;
  if (random() % 16 == 0) bytes.resize(random() % whole.size());
  for (std::uint64_t changes = random() % 4; changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = random() % bytes.size();
    switch (random() % 3) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
        break;
      case 1:  // a byte from elsewhere in the file: another opcode or argument
        bytes[at] = bytes[random() % bytes.size()];
        break;
      default:  // a duplicated piece
        bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 64));
    }
  }
  return bytes;
}

// Reads everything that commands read.
std::uint64_t walked(const formats::ImportedSnapshot& snapshot) {
  using session::TableId;
  const session::View view{session::Bytes::contiguous(snapshot.bytes.get(), snapshot.count)};
  if (view.problem() != session::Problem::none) std::abort();
  std::uint64_t sum = 0;
  session::Holder holder{};
  for (std::uint64_t i = 1; i < view.count(TableId::holders); ++i) {
    if (!view.read(TableId::holders, i, holder)) std::abort();
    sum += view.walk(holder.node, [&](std::uint64_t frame) { sum += frame; });
  }
  session::Lane lane{};
  session::Event event;
  if (!view.read(TableId::lanes, 1, lane)) std::abort();
  for (std::uint64_t number = 0; number < lane.ring_next; ++number)
    sum += view.event(lane, number, event);
  return sum;
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  std::ifstream stream{words[1], std::ios::binary};
  const std::string whole{std::istreambuf_iterator<char>{stream}, {}};
  if (whole.empty()) return 2;
  const int rounds = std::atoi(words[2]);
  std::mt19937_64 random{7};
  int read = 0;
  std::uint64_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    try {
      const std::string bytes = damaged(whole, random);
      sum += walked(formats::import_snapshot(bytes, 1));
      ++read;
    } catch (const formats::PickleError&) {
    }
  }
  if (sum == 1) return 3;  // keeps the compiler from removing the reads
  std::printf("%d read, %d refused\n", read, rounds - read);
  return 0;
}
