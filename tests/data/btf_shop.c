typedef unsigned int u32;
enum color { RED, GREEN = 5, BELOW = -2 };
enum wide { WIDE = 0x100000000ULL };
struct inner { short a; char text[4]; };
struct point {
    int x;
    u32 low : 3, high : 7;
    int side : 5;
    const char *name;
    struct inner rows[3];
    union { long l; double d; };
    enum color color;
    struct point *next;
    _Bool ok;
    enum wide wide;
    char rest[];
};
int seen;
__attribute__((noinline)) int weigh(struct point *p, enum color c, unsigned char k, double d, struct inner by) {
    seen += k;
    return p->x * (int) c + by.a + (int) d;
}
__attribute__((noinline)) long two(u32 n, void (*f)(int)) {
    seen += n + (f != 0);
    return -7;
}
struct point given = {3, 5, 100, -3, "hello", {{1, "ab"}, {2, ""}, {3, "xyz"}}, .l = 77, GREEN, &given, 1, WIDE};
int main(void) {
    struct inner by = {9, ""};
    return weigh(&given, GREEN, 7, 2.5, by) + (int) two(4000000000u, 0);
}
