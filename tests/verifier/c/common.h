/* What the programs of this directory share: written for the tests, after the interface that libbpf's users know. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
#define SEC(name) __attribute__((section(name), used))
#define inline __inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#define NULL ((void *)0)
#define __uint(name, value) int (*name)[value]
#define __type(name, type) type *name
struct ctx { u64 r[32]; };
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static long (*probe_read)(void *dst, u32 size, u64 src) = (void *)113;
static long (*probe_read_str)(void *dst, u32 size, u64 src) = (void *)115;
static u64 (*ktime)(void) = (void *)5;
static long (*trace_printk)(const char *fmt, u32 size, ...) = (void *)6;
static u32 (*prandom)(void) = (void *)7;
static u32 (*cpu_id)(void) = (void *)8;
static u64 (*pid_tgid)(void) = (void *)14;
static long (*comm)(void *buf, u32 size) = (void *)16;
static long (*perf_output)(void *ctx, void *map, u64 flags, void *data, u64 size) = (void *)25;
static long (*get_stackid)(void *ctx, void *map, u64 flags) = (void *)27;
static long (*override_return)(void *ctx, u64 rc) = (void *)58;
static long (*get_stack)(void *ctx, void *buf, u32 size, u64 flags) = (void *)67;
static long (*map_push)(void *map, const void *value, u64 flags) = (void *)87;
static long (*map_pop)(void *map, void *value) = (void *)88;
static long (*map_peek)(void *map, void *value) = (void *)89;
static long (*ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;
static void *(*ringbuf_reserve)(void *map, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*ringbuf_discard)(void *data, u64 flags) = (void *)133;
static u64 (*func_ip)(void *ctx) = (void *)173;
#define MAP(name_, type_, key_, value_, entries_) \
  struct { __uint(type, type_); __type(key, key_); __type(value, value_); __uint(max_entries, entries_); } name_ SEC(".maps")
#define RING(name_, size_) struct { __uint(type, 27); __uint(max_entries, size_); } name_ SEC(".maps")
MAP(counts, 2, u32, u64, 64);
MAP(hash, 1, u64, u64, 1024);
MAP(big, 2, u32, struct { u8 bytes[4096]; }, 1);
MAP(stacks, 7, u32, struct { u64 ip[32]; }, 64);
RING(events, 65536);
struct { __uint(type, 4); __uint(key_size, 4); __uint(value_size, 4); } perf SEC(".maps");
struct { __uint(type, 22); __type(value, u64); __uint(max_entries, 16); } queue SEC(".maps");
struct event { u32 kind; u32 cpu; u64 when; char name[16]; u64 args[4]; };
char _license[] SEC("license") = "GPL";
