struct point { int x; short y; char *name; };
enum color { RED, GREEN = 5 };
__attribute__((noinline)) int weigh(struct point *p, enum color c) { return p->x * p->y + c; }
