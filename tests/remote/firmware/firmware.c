/* Bare-metal: nothing below it, and it never ends. */
volatile int done;
__attribute__((noinline)) int leaf(int n) { __asm__ volatile(""); return n * 2 + 1; }
__attribute__((noinline)) int work(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += leaf(i); return sum; }
__attribute__((noinline, used)) void finished(int n) { done = n; for (;;) ; }
__attribute__((used)) void body(void) { finished(work(10)); }
