struct point { int x; short y; char *name; };
enum color { RED, GREEN = 5 };
int seen;
int weigh(struct point *p, enum color c);
__attribute__((noinline)) int work(struct point *p, int n, long d) {
    int total = 0;
    for (int i = 0; i < n; i++) { int twice = i * 2; total += weigh(p, GREEN) + twice; }
    seen = total;
    return total + (int) d;
}
int main(void) { struct point p = {3, 4, "hello"}; return work(&p, 5, 2); }
