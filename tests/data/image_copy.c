/* x86-64, GNU tools: an executable with its own copy of image_b.c's evar, and a static PIE with addends in place. */
extern int evar, ext(int);
int *at = &evar;
void _start(void) { ext(*at + evar); for (;;); }
