/* x86-64, GNU tools: symbol versions, ifuncs, thread-local words, initialisation functions, a PLT. */
int state;
__thread int mine = 3;
extern int ext(int);
__asm__(".symver old_f, f@V1");
__asm__(".symver new_f, f@@V2");
int old_f(void) { return 1; }
int new_f(void) { return 2; }
static int fast_g(void) { return 42; }
static int (*choose_g(void))(void) { return fast_g; }
int g(void) __attribute__((ifunc("choose_g")));
__attribute__((constructor)) static void begin(void) { state = 17; }
int call_g(void) { return g() + mine; }
int call_ext(int x) { return ext(x); }
