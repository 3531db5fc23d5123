/* Values that are easily read wrong: see tests/tracing/test_values_everywhere.py. No C library. */
#define KEEP __attribute__((noinline, used))

enum level { LOW = -3, MIDDLE, HIGH = 2 };
struct point { short x, y; };
struct __attribute__((packed)) tight { unsigned char first; signed int a : 13; unsigned int b : 27; signed int c : 20; };
struct item {
    int level : 5;
    enum level mood : 4;
    unsigned rest : 6;
    float fl;
    float next;
    double wide;
    struct point pts[3];
    struct point at;
    short rows[2][3];
    int many[70];
    char name[4];
    unsigned behind;
    struct tight tight;
};
struct big { long long words[6]; };
struct small { int only; };

struct item the_item = {-3, LOW, 33, 1.5f, 2.5f, -0.25, {{1, 2}, {3, 4}, {5, 6}}, {7, -8}, {{1, 2, 3}, {4, 5, -6}}, {9, 8}, {'a', 'b', 'c', 'd'}, 0x65666768,
                        {1, -4000, 100000000, -500000}};
volatile int sink;

KEEP struct big make(int a, int b, struct item *it) {
    struct big out = {{a, b, it->level}};
    sink = a + b;
    return out;
}

KEEP struct small few(int a, int b) {
    struct small out = {a + b};
    sink = b;
    return out;
}

KEEP double half(double d, int n) {
    sink = n;
    return d;
}

KEEP void nothing(int a, float f, int b) {
    sink = a + b;
}

KEEP int look(struct item *it, signed char small, long long wide) {
    sink = it->level + small;
    return (int)(wide + it->tight.a);
}

KEEP int outer(int n) {
    struct big made = make(n + 1, n + 2, &the_item);
    struct small got = few(n + 3, n + 4);
    nothing(n + 5, 1.5f, n + 6);
    half(2.5, n);
    return (int)made.words[1] + got.only + look(&the_item, -7, n - 5000000000LL);
}

void _start(void) {
    outer(1);
    for (;;)
        ;
}
