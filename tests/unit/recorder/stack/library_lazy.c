/* A function that is chosen at its first call, by a resolver that runs inside the loader. */
void (*g_on_resolve)(void);

static void chosen(void) {}

__attribute__((used)) static void (*choose(void))(void) {
  if (g_on_resolve != 0) g_on_resolve();
  return chosen;
}

void lazily_bound(void) __attribute__((ifunc("choose")));

void calls_lazily(unsigned depth) {
  volatile char room[40];
  room[0] = 1;
  if (depth != 0) {
    calls_lazily(depth - 1);
  } else {
    lazily_bound();
  }
  room[1] = room[0];
}
