/* What image_a.c imports. ext() reads a variable: it needs its own GOT pointer or TOC. */
int evar = 1234, step = 1;
int ext(int x) { return x * 2 + step; }
int there(int x) { return x - 5; }
