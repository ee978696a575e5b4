/* A library that needs more static TLS than is left. */
static __thread char block[1 << 20] __attribute__((tls_model("initial-exec")));
char* static_tls_plugin(void) { return block; }
