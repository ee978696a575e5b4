/* Built twice, with frames of different size: two libraries that look alike from outside. */
__attribute__((noinline)) static void inner(void (*visit)(unsigned, unsigned)) {
  volatile char room[FRAME_BYTES];
  room[0] = 1;
  visit(3, 1);
  room[1] = room[0];
}

void library_entry(void (*visit)(unsigned, unsigned)) {
  volatile char room[2 * FRAME_BYTES];
  room[0] = 1;
  inner(visit);
  room[1] = room[0];
}
