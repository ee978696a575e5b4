/* A library that wants more of every thread's static storage than is left. */
static __thread char block[1 << 20] __attribute__((tls_model("initial-exec")));
char* static_tls_plugin(void) { return block; }
