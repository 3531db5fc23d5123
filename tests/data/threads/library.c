__thread int counter = 7;
static __thread int zero;
int bump(int by) { zero += by; return counter += zero; }
