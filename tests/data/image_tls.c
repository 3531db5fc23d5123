/* Thread-local code in a relocatable file. */
extern __thread int mine;
int f(int x) { return mine + x; }
