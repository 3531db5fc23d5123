/* A program that real bpftrace and `kprobes script` both probe: each run does the same. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noinline, noclone, used))

enum color { RED, GREEN = 5, BLUE };

struct point {
  int32_t x;
  int64_t y;
};

struct item {
  char name[12];
  uint8_t small;
  int16_t negative;
  uint32_t low : 5;
  uint32_t high : 11;
  enum color color;
  struct point at;
  struct point *next;
  int32_t numbers[4];
  const char *text;
  union {
    uint32_t word;
    uint8_t bytes[4];
  };
};

static volatile long sum;
volatile int watched;

KEPT long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

KEPT int add(int a, long b, unsigned char c) {
  sum += a + b + c;
  return a + (int)b + c;
}

KEPT long many(long a, long b, long c, long d, long e, long f, long g, long h) {
  sum += a + b + c + d + e + f + g + h;
  return g - h;
}

KEPT const char *greet(const char *name) {
  sum += (long)strlen(name);
  return name + 1;
}

KEPT int use(struct item *item) {
  sum += item->small;
  return item->negative;
}

KEPT uint64_t wide(uint64_t value) { return value * 0x100000001ULL; }

KEPT _Bool even(unsigned value) { return value % 2 == 0; }

KEPT void fill(unsigned char *bytes, unsigned long size) {
  for (unsigned long i = 0; i < size; i++)
    bytes[i] = (unsigned char)(i * 37 + 9);
  sum += bytes[0];
}

KEPT void show(const unsigned char *bytes, unsigned long size) { sum += bytes[size - 1]; }

KEPT void inner(int depth) { sum += depth; }

KEPT void middle(int depth) {
  inner(depth);
  sum++;
}

KEPT void outer(int depth) {
  middle(depth);
  sum++;
}

KEPT void watch(int value) { watched = value; }

int main(int argc, char **argv) {
  static struct point next = {-7, 1LL << 40};
  static struct item item = {
      "twelve", 200, -300, 17, 1234, BLUE, {-1, -2}, &next, {3, -4, 5, -6}, "a text", {0x11223344}};
  unsigned char bytes[32];

  fib(10);
  for (int i = 0; i < 8; i++)
    add(i - 3, i * 1000L, (unsigned char)(250 + i));
  many(1, 2, 3, 4, 5, 6, 7, 8);
  greet("world");
  greet("");
  greet("a longer name with \"quotes\", a \ttab and a \\");
  use(&item);
  wide(0xfedcba9876543210ULL);
  for (unsigned i = 0; i < 3; i++)
    even(i);
  fill(bytes, sizeof bytes);
  show(bytes, sizeof bytes);
  for (int i = 0; i < 3; i++)
    outer(i);
  inner(9);
  for (int i = 0; i < 5; i++)
    watch(i * i);
  return argc > 1 ? atoi(argv[1]) : 0;
}
