// Counts words: words table|chain|lines|sort.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct word {
  struct word* next;
  char text[100];
};

static char** g_slots;
static size_t g_used, g_size;
static struct word* g_chain;

static void* need(void* memory) {
  if (memory == NULL) abort();
  return memory;
}

// Its memory is one array, which is doubled.
__attribute__((noinline)) static void grow(void) {
  g_size = g_size == 0 ? 65536 : g_size + g_size / 4;
  g_slots = need(realloc(g_slots, g_size * sizeof *g_slots));
}

__attribute__((noinline)) static void insert(char* text) {
  if (g_used == g_size) grow();
  g_slots[g_used++] = text;
}

__attribute__((noinline)) static void push(int number) {
  for (int i = 0; i < 1500; ++i) {
    struct word* made = need(malloc(sizeof *made));
    snprintf(made->text, sizeof made->text, "word %d", number);
    made->next = g_chain;
    g_chain = made;
  }
}

__attribute__((noinline)) static char* copy_line(int number) {
  char line[60000];
  memset(line, 'a' + number % 26, sizeof line - 1);
  line[sizeof line - 1] = 0;
  return need(strdup(line));
}

__attribute__((noinline)) static void count_word(void) {
  for (int i = 0; i < 40000; ++i) insert("word");
}

__attribute__((noinline)) static void read_page(int number) {
  for (int i = 0; i < 3; ++i) insert(copy_line(number + i));
}

// The bystander.
__attribute__((noinline)) static void shuffle(void) {
  char* volatile block = need(malloc(2500000));
  block[0] = 1;
  free(block);
}

// Works for long with little; then the copy that it sorts is larger than all that is left.
__attribute__((noinline)) static int sort_all(void) {
  const size_t count = 1 << 27;
  volatile long* copy = need(malloc(count * sizeof *copy));
  for (size_t i = 0; i < count; i += 256) copy[i] = (long)i;
  return (int)copy[256];
}

int main(int count, char** words) {
  const char* cause = count > 1 ? words[1] : "";
  for (int number = 0;; ++number) {
    if (strcmp(cause, "table") == 0) count_word();
    if (strcmp(cause, "chain") == 0) push(number);
    if (strcmp(cause, "lines") == 0) read_page(number);
    if (strcmp(cause, "sort") == 0 && number == 200) return sort_all();
    shuffle();
    usleep(12000);
  }
}
