struct inner;
struct own { struct point *p; struct inner *i; int n; };
struct point { int x; };
struct inner { short a; char text[4]; };
__attribute__((noinline)) int extra(struct own *o, struct inner *i) { return o->n + i->a; }
