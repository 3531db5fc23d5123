volatile int sink; volatile int turns = 2;
__attribute__((noinline)) int leaf(int a) { sink += a; return a * 3; }
__attribute__((noinline)) int deep(int n) { volatile char room[200]; room[n] = n; if (n <= 0) return leaf(room[n]); return deep(n - 1) + room[n]; }
__attribute__((noinline)) int mid(int a, int b) { int x = leaf(a); for (int i = 0; i < turns; i++) x += deep(i + b) ^ leaf(x); return x; }
__attribute__((noinline)) int dyn(int n) {
    char room[n * 16];
    __asm__ volatile ("" :: "r"(room) : "memory");
    room[0] = mid(n, 1);
    return room[0] + leaf(n);
}
int main(void) { return mid(3, 2) + dyn(turns); }
