/* x86-64, GNU tools: a static executable whose only relocations are ifuncs'. */
static int fast_g(void) { return 42; }
static int (*choose_g(void))(void) { return fast_g; }
int g(void) __attribute__((ifunc("choose_g")));
void _start(void) { g(); for (;;); }
