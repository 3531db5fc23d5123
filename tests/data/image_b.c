/* What image_a.c imports. */
int evar = 1234;
int ext(int x) { return x * 2 + 1; }
int there(int x) { return x - 5; }
