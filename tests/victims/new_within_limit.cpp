// Holds blocks of 7 MiB until new throws, catches, frees all and fills up to 7 blocks again.
#include <cstdio>
#include <new>

static char* volatile blocks[100];

static int fill(int most) {
  int count = 0;
  while (count < most) {
    blocks[count] = new char[7 << 20];
    ++count;
  }
  return count;
}

int main() {
  try {
    fill(100);
  } catch (const std::bad_alloc&) {
    std::printf("caught, ");
  }
  for (char* volatile& block : blocks) {
    delete[] block;
    block = nullptr;
  }
  std::printf("%d again\n", fill(7));
}
