// The library of codec/: what it decodes belongs to its caller, its tables to nobody.
#include <stdlib.h>
#include <string.h>

struct table {
  struct table* next;
  char cells[160000];
};
static struct table* g_tables;

static void fill(char* memory, size_t bytes, int number) { memset(memory, number, bytes); }

__attribute__((noinline)) static char* inflate_block(int number) {
  char* block = malloc(180000);
  if (block == NULL) abort();
  fill(block, 180000, number);
  return block;
}

void* codec_decode(int number) { return inflate_block(number); }

void codec_add_table(int number) {
  struct table* made = malloc(sizeof *made);
  if (made == NULL) abort();
  fill(made->cells, sizeof made->cells, number);
  made->next = g_tables;
  g_tables = made;
}
