/* Sensible programs: the verifier accepts each, however clang compiles it. One function is one program. */
#include "common.h"

SEC("kprobe/nothing") int nothing(struct ctx *c) { return 0; }

SEC("kprobe/array_count") int array_count(struct ctx *c) {
  u32 key = 3;
  u64 *v = map_lookup(&counts, &key);
  if (v) *v += 1;
  return 0;
}

SEC("kprobe/atomic_count") int atomic_count(struct ctx *c) {
  int k = (int)c->r[3];
  if (k < 0 || k >= 64) return 0;
  u32 key = k;
  u64 *v = map_lookup(&counts, &key);
  if (v) __sync_fetch_and_add(v, 1);
  return 0;
}

SEC("kprobe/hash_count") int hash_count(struct ctx *c) {
  u64 key = c->r[1], one = 1, *v = map_lookup(&hash, &key);
  if (v) { __sync_fetch_and_add(v, 1); return 0; }
  map_update(&hash, &key, &one, 1);
  return 0;
}

static inline u32 log2(u32 v) {
  u32 r = (v > 0xFFFF) << 4, shift;
  v >>= r;
  shift = (v > 0xFF) << 3; v >>= shift; r |= shift;
  shift = (v > 0xF) << 2; v >>= shift; r |= shift;
  shift = (v > 0x3) << 1; v >>= shift; r |= shift;
  return r | (v >> 1);
}
static inline u32 log2l(u64 v) { u32 hi = v >> 32; return hi ? log2(hi) + 32 : log2(v); }
struct hist { u32 slots[64]; };
MAP(hists, 1, u64, struct hist, 256);
static struct hist zero_hist;

SEC("kprobe/hist_log2") int hist_log2(struct ctx *c) {
  u64 key = 0;
  struct hist *h = map_lookup(&hists, &key);
  if (!h) {
    map_update(&hists, &key, &zero_hist, 0);
    h = map_lookup(&hists, &key);
    if (!h) return 0;
  }
  u32 slot = log2l(c->r[2]);
  if (slot >= 64) slot = 63;
  __sync_fetch_and_add(&h->slots[slot], 1);
  return 0;
}

u64 global_hist[64];
SEC("kprobe/hist_global") int hist_global(struct ctx *c) {
  u32 slot = log2l(c->r[2]);
  global_hist[slot & 63]++;
  return 0;
}

SEC("kprobe/ring_event") int ring_event(struct ctx *c) {
  struct event *e = ringbuf_reserve(&events, sizeof *e, 0);
  if (!e) return 0;
  e->kind = 1;
  e->cpu = cpu_id();
  e->when = ktime();
  comm(e->name, sizeof e->name);
  for (int i = 0; i < 4; i++) e->args[i] = c->r[i];
  ringbuf_submit(e, 0);
  return 0;
}

SEC("kprobe/ring_discard") int ring_discard(struct ctx *c) {
  struct event *e = ringbuf_reserve(&events, sizeof *e, 0);
  if (!e) return 0;
  if (probe_read(e->name, sizeof e->name, c->r[0]) < 0) { ringbuf_discard(e, 0); return 1; }
  if (e->name[0] == 'x') { ringbuf_discard(e, 0); return 2; }
  e->args[0] = c->r[1];
  ringbuf_submit(e, 0);
  return 0;
}

SEC("kprobe/ring_output") int ring_output(struct ctx *c) {
  struct event e = {};
  e.kind = 2;
  e.when = ktime();
  e.args[3] = c->r[7];
  ringbuf_output(&events, &e, sizeof e, 0);
  return 0;
}

struct padded { u8 a; u32 b; u16 c; u64 d; u8 e; };
MAP(by_padded, 1, struct padded, struct padded, 64);
SEC("kprobe/padding") int padding(struct ctx *c) {
  struct padded k = {.a = c->r[0], .b = c->r[1], .d = c->r[2], .e = 7}, v = k, *old;
  old = map_lookup(&by_padded, &k);
  if (old) { v.b += old->b; v.e ^= old->e; }
  map_update(&by_padded, &k, &v, 0);
  return 0;
}

SEC("kprobe/read_string") int read_string(struct ctx *c) {
  char buf[64];
  long n = probe_read_str(buf, sizeof buf, c->r[0]);
  if (n <= 0) return 0;
  if (buf[0] == '/' && n > 3) return 1;
  ringbuf_output(&events, buf, n, 0);
  return 2;
}

SEC("kprobe/string_length") int string_length(struct ctx *c) {
  char buf[48];
  int n = 0;
  if (probe_read_str(buf, sizeof buf, c->r[0]) < 0) return -1;
  for (int i = 0; i < 48; i++) { if (!buf[i]) break; n++; }
  return n;
}

static inline int equal(const char *a, const char *b, int n) {
  for (int i = 0; i < n; i++) {
    if (a[i] != b[i]) return 0;
    if (!a[i]) return 1;
  }
  return 1;
}
SEC("kprobe/compare") int compare(struct ctx *c) {
  char buf[16] = {};
  probe_read_str(buf, sizeof buf, c->r[0]);
  if (equal(buf, "hello, world", 13)) return 1;
  if (equal(buf, "bye", 4)) return 2;
  return 0;
}

SEC("kprobe/count_letters") int count_letters(struct ctx *c) {
  char buf[64];
  int letters = 0, digits = 0;
  if (probe_read(buf, sizeof buf, c->r[0])) return 0;
  for (int i = 0; i < 64; i++) {
    if (buf[i] >= 'a' && buf[i] <= 'z') letters++;
    else if (buf[i] >= '0' && buf[i] <= '9') digits++;
  }
  if (letters > digits) return letters;
  return digits;
}

SEC("kprobe/hash_string") int hash_string(struct ctx *c) {
  char buf[32];
  u32 h = 2166136261u;
  long n = probe_read_str(buf, sizeof buf, c->r[0]);
  if (n < 0) return 0;
  for (u32 i = 0; i < 32 && i < n; i++) h = (h ^ (u8)buf[i]) * 16777619u;
  u64 key = h, one = 1;
  map_update(&hash, &key, &one, 0);
  return 0;
}

SEC("kprobe/loop_sum") int loop_sum(struct ctx *c) {
  u64 sum = 0;
  for (int i = 0; i < 100; i++) sum += i * c->r[0] ^ sum >> 3;
  return sum & 0xff;
}

SEC("kprobe/loop_n") int loop_n(struct ctx *c) {
  u32 n = c->r[0], *p;
  u64 sum = 0;
  if (n > 200) n = 200;
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < n; i++) { u32 k = i & 63; u64 *v = map_lookup(&counts, &k); if (v) sum += *v; }
  return sum > 10;
}

SEC("kprobe/nested_loops") int nested_loops(struct ctx *c) {
  u32 x = c->r[0], hits = 0;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 12; i++)
#pragma clang loop unroll(disable)
    for (int j = 0; j < 12; j++) if ((x ^ i * j) & 4) hits++;
  return hits;
}

SEC("kprobe/sort") int sort(struct ctx *c) {
  u64 a[6];
  for (int i = 0; i < 6; i++) a[i] = c->r[i];
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < 5; j++)
      if (a[j] > a[j + 1]) { u64 t = a[j]; a[j] = a[j + 1]; a[j + 1] = t; }
  return a[2] < a[3];
}

SEC("kprobe/variable_index") int variable_index(struct ctx *c) {
  u8 buf[32] = {};
  u32 i = c->r[0] & 31;
  buf[i] = c->r[1];
  buf[(i + 5) & 31] ^= 3;
  ringbuf_output(&events, buf, sizeof buf, 0);
  return buf[c->r[2] % 32];
}

SEC("kprobe/big_value") int big_value(struct ctx *c) {
  u32 zero = 0, at = c->r[0], n = c->r[1];
  u8 *p = map_lookup(&big, &zero);
  if (!p) return 0;
  if (at > 2048) return 0;
  if (n > 1024) n = 1024;
  if (probe_read(p + at, n, c->r[2])) return 1;
  if (at + n < 4096) p[at + n] = 0;
  return 0;
}

SEC("kprobe/append_strings") int append_strings(struct ctx *c) {
  u32 zero = 0, at = 0;
  u8 *p = map_lookup(&big, &zero);
  if (!p) return 0;
  for (int i = 0; i < 8; i++) {
    if (at > 4096 - 128) break;
    long n = probe_read_str(p + at, 128, c->r[i]);
    if (n < 0) break;
    at += n;
  }
  if (at > 4096) at = 4096;
  ringbuf_output(&events, p, at, 0);
  return at;
}

static noinline int weigh(u64 a, u64 b, u32 c) { return a > b ? c + 1 : (a ^ b) & 0xff; }
SEC("kprobe/subprogram") int subprogram(struct ctx *c) { return weigh(c->r[0], c->r[1], c->r[2]) + weigh(c->r[3], c->r[4], 7); }

static noinline int fill(struct event *e, struct ctx *c, int n) {
  e->kind = n;
  for (int i = 0; i < 4; i++) e->args[i] = c->r[i + 2];
  return e->kind + 1;
}
SEC("kprobe/stack_to_subprogram") int stack_to_subprogram(struct ctx *c) {
  struct event e = {};
  int r = fill(&e, c, 3);
  perf_output(c, &perf, 0xffffffffULL, &e, sizeof e);
  return r;
}

static noinline u64 *find(u32 key) { return map_lookup(&counts, &key); }
SEC("kprobe/pointer_from_subprogram") int pointer_from_subprogram(struct ctx *c) {
  u64 *v = find(c->r[0] & 63);
  if (!v) return 1;
  *v += 2;
  return 0;
}

static noinline int deep4(u64 x) { return x * 3 & 0xf; }
static noinline int deep3(u64 x) { return deep4(x + 1) + deep4(x >> 3); }
static noinline int deep2(u64 x) { return deep3(x ^ 5) | deep4(x); }
static noinline int deep1(u64 x) { return deep2(x) - deep3(x); }
SEC("kprobe/deep_calls") int deep_calls(struct ctx *c) { return deep1(c->r[5]) + deep2(9); }

SEC("kprobe/switch_case") int switch_case(struct ctx *c) {
  switch (c->r[0]) {
    case 0: return 5;
    case 1: return 3;
    case 2: return 8;
    case 9: case 10: return 1;
    case 77: return (int)c->r[1];
    case 1000: return 12;
    default: return -1;
  }
}

static const char *const unused = "x";
static const u32 table[16] = {1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225, 256};
SEC("kprobe/rodata_table") int rodata_table(struct ctx *c) { return table[c->r[0] & 15]; }

const volatile u64 threshold = 100;
u64 over, under;
SEC("kprobe/globals") int globals(struct ctx *c) {
  if (c->r[0] > threshold) over++;
  else __sync_fetch_and_add(&under, c->r[0]);
  return 0;
}

const volatile u32 limit = 50;
SEC("kprobe/rodata_bound") int rodata_bound(struct ctx *c) {
  u64 sum = 0;
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < limit; i++) sum += global_hist[i] ^ c->r[0];
  return sum & 7;
}

struct node { struct node *next; u32 value; };
SEC("kprobe/walk_list") int walk_list(struct ctx *c) {
  u64 at = c->r[0];
  u32 sum = 0;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 16; i++) {
    struct { u64 next; u32 value; u32 pad; } n;
    if (!at) break;
    if (probe_read(&n, sizeof n, at)) return -1;
    sum += n.value;
    at = n.next;
  }
  return sum;
}

SEC("kprobe/printk") int printk(struct ctx *c) {
  char fmt[] = "crc32 %d %s %lx";
  trace_printk(fmt, sizeof fmt, (u32)c->r[2], c->r[1], pid_tgid());
  return 0;
}

MAP(started, 1, u32, u64, 1024);
SEC("kprobe/latency_entry") int latency_entry(struct ctx *c) {
  u32 tid = pid_tgid();
  u64 now = ktime();
  map_update(&started, &tid, &now, 0);
  return 0;
}
SEC("kretprobe/latency_return") int latency_return(struct ctx *c) {
  u32 tid = pid_tgid();
  u64 *t = map_lookup(&started, &tid);
  if (!t) return 0;
  u64 took = ktime() - *t;
  map_delete(&started, &tid);
  u32 slot = log2l(took);
  u64 *v = map_lookup(&counts, &slot);
  if (v) __sync_fetch_and_add(v, 1);
  return 0;
}

SEC("kprobe/stack_count") int stack_count(struct ctx *c) {
  long id = get_stackid(c, &stacks, 0);
  if (id < 0) return 0;
  u64 key = id, one = 1, *v = map_lookup(&hash, &key);
  if (v) *v += 1;
  else map_update(&hash, &key, &one, 0);
  return 0;
}

SEC("kprobe/stack_walk") int stack_walk(struct ctx *c) {
  u64 ips[16];
  long n = get_stack(c, ips, sizeof ips, 0);
  u64 x = 0;
  if (n < 0) return 0;
  for (int i = 0; i < 16; i++) { if (i * 8 >= n) break; x ^= ips[i]; }
  return x & 0xffff;
}

SEC("kprobe/inject") int inject(struct ctx *c) {
  if (prandom() % 100 < 5) override_return(c, -12);
  return 0;
}

SEC("kprobe/queue_work") int queue_work(struct ctx *c) {
  u64 v = c->r[0], old = 0;
  if (map_push(&queue, &v, 0)) { map_pop(&queue, &old); map_push(&queue, &v, 2); }
  if (map_peek(&queue, &v)) return 0;
  return v == old;
}

struct point { s32 x, y; };
struct shape { struct point p[4]; u8 kind; s16 weight; };
SEC("kprobe/structs") int structs(struct ctx *c) {
  struct shape s;
  if (probe_read(&s, sizeof s, c->r[0])) return 0;
  s32 area = 0;
  for (int i = 0; i < 4; i++) {
    struct point a = s.p[i], b = s.p[(i + 1) & 3];
    area += a.x * b.y - b.x * a.y;
  }
  if (area < 0) area = -area;
  return area / 2 + s.weight % 7 - s.kind;
}

SEC("kprobe/signed_bounds") int signed_bounds(struct ctx *c) {
  s64 i = (s64)c->r[0];
  s32 j = (s32)c->r[1];
  u64 out = 0;
  if (i >= -8 && i < 8) out += global_hist[i + 8];
  if (j >= 0 && j <= 10) out += global_hist[j + 3];
  return out;
}

SEC("kprobe/two_records") int two_records(struct ctx *c) {
  struct event *a = ringbuf_reserve(&events, sizeof *a, 0), *b;
  if (!a) return 0;
  b = ringbuf_reserve(&events, sizeof *b, 0);
  if (!b) { ringbuf_discard(a, 0); return 0; }
  b->when = a->when = ktime();
  a->kind = 1; b->kind = 2;
  ringbuf_submit(b, 0);
  ringbuf_submit(a, 0);
  return 0;
}

SEC("kprobe/pointer_loop") int pointer_loop(struct ctx *c) {
  u32 zero = 0;
  u8 *p = map_lookup(&big, &zero), *end;
  u64 sum = 0;
  if (!p) return 0;
#pragma clang loop unroll(disable)
  for (end = p + 256; p != end; p++) sum += *p;
  return sum & 0xff;
}

SEC("kprobe/bitmap") int bitmap(struct ctx *c) {
  u64 bits[4] = {};
#pragma clang loop unroll(disable)
  for (int i = 0; i < 8; i++) { u32 bit = c->r[i] & 255; bits[bit >> 6] |= 1ULL << (bit & 63); }
  int n = 0;
  for (int i = 0; i < 4; i++) n += __builtin_popcountll(bits[i]);
  return n;
}

SEC("kprobe/swaps") int swaps(struct ctx *c) {
  u64 a = __builtin_bswap64(c->r[0]);
  u32 b = __builtin_bswap32((u32)c->r[1]);
  u16 d = __builtin_bswap16((u16)c->r[2]);
  return global_hist[a & 63] + global_hist[(b >> 26) & 63] + global_hist[d >> 10];
}

#if __BPF_CPU_VERSION__ >= 3 /* before, there is atomic addition only */
SEC("kprobe/exchange") int exchange(struct ctx *c) {
  u64 old = __sync_lock_test_and_set(&over, c->r[0]);
  u64 was = __sync_val_compare_and_swap(&under, old, c->r[1]);
  u32 *half = (u32 *)&global_hist[1];
  return was == old ? __sync_fetch_and_or(half, 6) : __sync_fetch_and_and(half, 0xff00);
}
#endif

SEC("kprobe/memory_functions") int memory_functions(struct ctx *c) {
  struct event a, b;
  __builtin_memset(&a, 0, sizeof a);
  a.args[1] = c->r[1];
  __builtin_memcpy(&b, &a, sizeof b);
  b.args[2] = 5;
  if (a.args[1] == b.args[1]) ringbuf_output(&events, &b, sizeof b, 0);
  return 0;
}

SEC("kprobe/parse_number") int parse_number(struct ctx *c) {
  char buf[24] = {};
  u64 n = 0;
  if (probe_read_str(buf, sizeof buf, c->r[0]) < 0) return -1;
  for (int i = 0; i < 23; i++) {
    char ch = buf[i];
    if (ch < '0' || ch > '9') break;
    n = n * 10 + (ch - '0');
  }
  return n > 1000000;
}

static noinline int checked_store(u64 *values, u32 at, u64 v) {
  if (at >= 8) return -1;
  values[at] = v;
  return 0;
}
SEC("kprobe/array_to_subprogram") int array_to_subprogram(struct ctx *c) {
  u64 values[8] = {};
  int bad = 0;
  for (int i = 0; i < 6; i++) bad += checked_store(values, c->r[i], i);
  return bad ? bad : values[3];
}
