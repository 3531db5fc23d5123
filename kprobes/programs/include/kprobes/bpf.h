/* kprobes/bpf.h: what probe programs in C need. One source serves guests of every architecture.
 *
 *     #include <kprobes/bpf.h>
 *
 *     struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1024); __type(key, __u64); __type(value, __u64); } counts SEC(".maps");
 *
 *     SEC("kprobe/crc32") int on_crc(struct pt_regs *ctx)
 *     {
 *         __u64 key = PT_REGS_PARM3(ctx), one = 1, *n = bpf_map_lookup_elem(&counts, &key);
 *         if (n) *n += 1; else bpf_map_update_elem(&counts, &key, &one, BPF_ANY);
 *         return 0;
 *     }
 *
 * The names are those of Linux's UAPI and of libbpf wherever they have one.
 */
#ifndef KPROBES_BPF_H
#define KPROBES_BPF_H

typedef unsigned char __u8, u8;
typedef unsigned short __u16, u16;
typedef unsigned int __u32, u32;
typedef unsigned long long __u64, u64;
typedef signed char __s8, s8;
typedef short __s16, s16;
typedef int __s32, s32;
typedef long long __s64, s64;
typedef __u64 size_t_64;
#ifndef __cplusplus
typedef _Bool bool;
enum { false = 0, true = 1 };
#endif
#ifndef NULL
#define NULL ((void *)0)
#endif

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) __typeof__(val) *name
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define __hidden __attribute__((visibility("hidden")))

/* The context. Registers of the guest, in the order of the architecture's names (KPROBES_REG_<arch>_<name> below), zero-extended;
 * from word 104 on, what every architecture has. */
struct pt_regs {
    __u64 r[104];
    __u64 pc, sp, rc, ret, fp, bits, big_endian, count;
    __u64 parm[16];
};
#define PT_REGS_IP(ctx) ((ctx)->pc)
#define PT_REGS_SP(ctx) ((ctx)->sp)
#define PT_REGS_FP(ctx) ((ctx)->fp)                 /* 0 where the architecture has no convention */
#define PT_REGS_RET(ctx) ((ctx)->ret)               /* at function entry: where it returns to */
#define PT_REGS_RC(ctx) ((ctx)->rc)                 /* at a return: the value */
#define PT_REGS_PARM(ctx, n) ((ctx)->parm[(n) - 1]) /* at function entry: integer arguments, from 1 */
#define PT_REGS_PARM1(ctx) PT_REGS_PARM(ctx, 1)
#define PT_REGS_PARM2(ctx) PT_REGS_PARM(ctx, 2)
#define PT_REGS_PARM3(ctx) PT_REGS_PARM(ctx, 3)
#define PT_REGS_PARM4(ctx) PT_REGS_PARM(ctx, 4)
#define PT_REGS_PARM5(ctx) PT_REGS_PARM(ctx, 5)
#define PT_REGS_PARM6(ctx) PT_REGS_PARM(ctx, 6)
#define PT_REGS_PARM7(ctx) PT_REGS_PARM(ctx, 7)
#define PT_REGS_PARM8(ctx) PT_REGS_PARM(ctx, 8)
#define PT_REGS_WORD_SIZE(ctx) ((__u32)(ctx)->bits / 8) /* bytes of a word and of a pointer of the guest: 4 or 8 */
#define PT_REGS_BIG_ENDIAN(ctx) ((ctx)->big_endian)     /* 1 or 0 */
/* KPROBES_REG(ctx, x86_64_rdi). The object says whose register it is, so that the program is refused for other guests. */
#define KPROBES_REG(ctx, name) ({                                                                               \
    __asm__ volatile("1: .pushsection .kprobes.registers,\"\",@progbits; .quad 1b; .asciz \"" #name "\"; .popsection"); \
    (ctx)->r[KPROBES_REG_##name]; })

enum {
    BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4, BPF_MAP_TYPE_PERCPU_HASH = 5,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_STACK_TRACE = 7, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
    BPF_MAP_TYPE_QUEUE = 22, BPF_MAP_TYPE_STACK = 23, BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1, BPF_RB_CONS_POS = 2, BPF_RB_PROD_POS = 3 };
#define BPF_F_USER_STACK (1ULL << 8)
#define BPF_F_FAST_STACK_CMP (1ULL << 9)
#define BPF_F_REUSE_STACKID (1ULL << 10)
#define BPF_F_CURRENT_CPU 0xffffffffULL

/* Helpers, by Linux's numbers. Guest addresses are numbers: only bpf_probe_read*() reads there, raw bytes. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*const bpf_probe_read)(void *dst, __u32 size, const void *guest) = (void *)4;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_trace_printk)(const char *fmt, __u32 fmt_size, ...) = (void *)6;
static __u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static __u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const bpf_get_current_comm)(void *buf, __u32 size) = (void *)16;
static long (*const bpf_perf_event_output)(void *ctx, void *map, __u64 flags, void *data, __u64 size) = (void *)25;
static long (*const bpf_get_stackid)(void *ctx, void *map, __u64 flags) = (void *)27;
static long (*const bpf_probe_read_str)(void *dst, __u32 size, const void *guest) = (void *)45;
static long (*const bpf_override_return)(struct pt_regs *regs, __u64 rc) = (void *)58;
static long (*const bpf_get_stack)(void *ctx, void *buf, __u32 size, __u64 flags) = (void *)67;
static long (*const bpf_map_push_elem)(void *map, const void *value, __u64 flags) = (void *)87;
static long (*const bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*const bpf_map_peek_elem)(void *map, void *value) = (void *)89;
static long (*const bpf_probe_read_user)(void *dst, __u32 size, const void *guest) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *dst, __u32 size, const void *guest) = (void *)113;
static long (*const bpf_probe_read_user_str)(void *dst, __u32 size, const void *guest) = (void *)114;
static long (*const bpf_probe_read_kernel_str)(void *dst, __u32 size, const void *guest) = (void *)115;
static __u64 (*const bpf_ktime_get_boot_ns)(void) = (void *)125;
static long (*const bpf_ringbuf_output)(void *ringbuf, void *data, __u64 size, __u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, __u64 flags) = (void *)133;
static __u64 (*const bpf_ringbuf_query)(void *ringbuf, __u64 flags) = (void *)134;
static long (*const bpf_trace_vprintk)(const char *fmt, __u32 fmt_size, const void *data, __u32 data_len) = (void *)177;
static long (*const bpf_snprintf)(char *str, __u32 str_size, const char *fmt, const __u64 *data, __u32 data_len) = (void *)165;
static long (*const bpf_strncmp)(const char *s1, __u32 s1_size, const char *s2) = (void *)182;
static __u64 (*const bpf_get_func_ip)(void *ctx) = (void *)173;
static __u64 (*const bpf_get_attach_cookie)(void *ctx) = (void *)174;

#define ____bpf_narg(...) ____bpf_nth(_, ##__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ____bpf_nth(_, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, N, ...) N
#define ____bpf_apply(f, n) f##n
#define ____bpf_concat(f, n) ____bpf_apply(f, n)
#define ____bpf_short(fmt, ...) bpf_trace_printk(fmt, sizeof(fmt), ##__VA_ARGS__)
#define ____bpf_long(fmt, ...)                                                             \
    ({ __u64 ____args[] = {____bpf_concat(____bpf_u64_, ____bpf_narg(__VA_ARGS__))(__VA_ARGS__)};  \
       bpf_trace_vprintk(fmt, sizeof(fmt), ____args, sizeof(____args)); })
#define ____bpf_u64_4(x, ...) (__u64)(x), ____bpf_u64_3(__VA_ARGS__)
#define ____bpf_u64_3(x, ...) (__u64)(x), ____bpf_u64_2(__VA_ARGS__)
#define ____bpf_u64_2(x, ...) (__u64)(x), ____bpf_u64_1(__VA_ARGS__)
#define ____bpf_u64_1(x) (__u64)(x)
#define ____bpf_u64_5(x, ...) (__u64)(x), ____bpf_u64_4(__VA_ARGS__)
#define ____bpf_u64_6(x, ...) (__u64)(x), ____bpf_u64_5(__VA_ARGS__)
#define ____bpf_u64_7(x, ...) (__u64)(x), ____bpf_u64_6(__VA_ARGS__)
#define ____bpf_u64_8(x, ...) (__u64)(x), ____bpf_u64_7(__VA_ARGS__)
#define ____bpf_u64_9(x, ...) (__u64)(x), ____bpf_u64_8(__VA_ARGS__)
#define ____bpf_u64_10(x, ...) (__u64)(x), ____bpf_u64_9(__VA_ARGS__)
#define ____bpf_u64_11(x, ...) (__u64)(x), ____bpf_u64_10(__VA_ARGS__)
#define ____bpf_u64_12(x, ...) (__u64)(x), ____bpf_u64_11(__VA_ARGS__)
#define ____bpf_pick(_, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, f, ...) f
/* A line for Attachment.printed; up to 12 arguments; %s shows a string of the guest's or the program's. */
#define BPF_SNPRINTF(out, out_size, fmt, ...)                                              \
    ({ static const char ____fmt[] = fmt;                                                  \
       __u64 ____args[] = {____bpf_concat(____bpf_u64_, ____bpf_narg(__VA_ARGS__))(__VA_ARGS__)};  \
       bpf_snprintf(out, out_size, ____fmt, ____args, sizeof(____args)); })
#define bpf_printk(fmt, ...)                                                               \
    ({ static const char ____fmt[] = fmt;                                                  \
       ____bpf_pick(_, ##__VA_ARGS__, ____bpf_long, ____bpf_long, ____bpf_long, ____bpf_long, ____bpf_long, ____bpf_long,   \
                    ____bpf_long, ____bpf_long, ____bpf_long, ____bpf_short, ____bpf_short, ____bpf_short, ____bpf_short)   \
       (____fmt, ##__VA_ARGS__); })

/* Numbers in guest memory, in the guest's byte order; 0 where nothing is mapped. */
static __always_inline __u8 guest_u8(struct pt_regs *ctx, __u64 addr)
{
    __u8 v = 0;
    bpf_probe_read(&v, sizeof(v), (void *)addr);
    return v;
}
#define ____KPROBES_GUEST(bits)                                                            \
    static __always_inline __u##bits guest_u##bits(struct pt_regs *ctx, __u64 addr)        \
    {                                                                                      \
        __u##bits v = 0;                                                                   \
        bpf_probe_read(&v, sizeof(v), (void *)addr);                                       \
        return PT_REGS_BIG_ENDIAN(ctx) ? __builtin_bswap##bits(v) : v;                     \
    }
____KPROBES_GUEST(16)
____KPROBES_GUEST(32)
____KPROBES_GUEST(64)
/* A word (a pointer, a long) of the guest, zero-extended. */
static __always_inline __u64 guest_word(struct pt_regs *ctx, __u64 addr)
{
    return PT_REGS_WORD_SIZE(ctx) == 8 ? guest_u64(ctx, addr) : guest_u32(ctx, addr);
}

/* libbpf's forms: int BPF_KPROBE(on_read, int fd, char *buf) { ... ctx is there, too ... } */
#define ____parms0() ctx
#define ____parms1(x) ____parms0(), (void *)PT_REGS_PARM1(ctx)
#define ____parms2(x, ...) ____parms1(__VA_ARGS__), (void *)PT_REGS_PARM2(ctx)
#define ____parms3(x, ...) ____parms2(__VA_ARGS__), (void *)PT_REGS_PARM3(ctx)
#define ____parms4(x, ...) ____parms3(__VA_ARGS__), (void *)PT_REGS_PARM4(ctx)
#define ____parms5(x, ...) ____parms4(__VA_ARGS__), (void *)PT_REGS_PARM5(ctx)
#define ____parms6(x, ...) ____parms5(__VA_ARGS__), (void *)PT_REGS_PARM6(ctx)
#define ____parms7(x, ...) ____parms6(__VA_ARGS__), (void *)PT_REGS_PARM7(ctx)
#define ____parms8(x, ...) ____parms7(__VA_ARGS__), (void *)PT_REGS_PARM8(ctx)
#define ____parms(...) ____bpf_concat(____parms, ____bpf_narg(__VA_ARGS__))(__VA_ARGS__)
#define ____ret0() ctx
#define ____ret1(x) ctx, (void *)PT_REGS_RC(ctx)
#define ____rets(...) ____bpf_concat(____ret, ____bpf_narg(__VA_ARGS__))(__VA_ARGS__)
#define ____quietly(text) _Pragma(text)
/* The program takes the context's words as parameters of any type; `given` makes the list of them. */
#define ____typed(name, given, args...)                                                    \
    name(struct pt_regs *ctx);                                                             \
    static __always_inline int ____##name(struct pt_regs *ctx, ##args);                    \
    int name(struct pt_regs *ctx)                                                          \
    {                                                                                      \
        ____quietly("GCC diagnostic push")                                                 \
        ____quietly("GCC diagnostic ignored \"-Wint-conversion\"")                         \
        return ____##name(given(args));                                                    \
        ____quietly("GCC diagnostic pop")                                                  \
    }                                                                                      \
    static __always_inline int ____##name(struct pt_regs *ctx, ##args)
#define BPF_KPROBE(name, args...) ____typed(name, ____parms, ##args)
#define BPF_KRETPROBE(name, args...) ____typed(name, ____rets, ##args)

/* Registers by name: KPROBES_REG(ctx, arm64_x19). Made from the architectures by docs/generate.py. */
#include <kprobes/registers.h>
#endif
