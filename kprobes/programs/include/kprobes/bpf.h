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
#define __array(name, val) __typeof__(val) *name[]
#define __ulong(name, val) enum { ___bpf_concat(__unique_value, __COUNTER__) = val } name
#define __ksym __attribute__((section(".ksyms")))
#define __kconfig __attribute__((section(".kconfig")))
#define __arg_ctx __attribute__((btf_decl_tag("arg:ctx")))
#define __arg_nonnull __attribute__((btf_decl_tag("arg:nonnull")))
#define __percpu
#define __user
#define __kernel
#define ___bpf_concat(a, b) ____bpf_apply(a, b)
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(var) __asm__ volatile("" : "+r"(var))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#ifndef container_of
#define container_of(ptr, type, member) ((type *)((void *)(ptr) - offsetof(type, member)))
#endif
typedef __u16 __be16, __le16;
typedef __u32 __be32, __le32, __wsum;
typedef __u64 __be64, __le64;
typedef unsigned int uint, uint32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned long long uint64_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t, pid_t;
typedef long long int64_t;
typedef __u64 size_t;
typedef __s64 ssize_t;
typedef __u32 uid_t, gid_t;

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
#define PT_REGS_PARM1_CORE(ctx) PT_REGS_PARM1(ctx)
#define PT_REGS_PARM2_CORE(ctx) PT_REGS_PARM2(ctx)
#define PT_REGS_PARM3_CORE(ctx) PT_REGS_PARM3(ctx)
#define PT_REGS_PARM4_CORE(ctx) PT_REGS_PARM4(ctx)
#define PT_REGS_PARM5_CORE(ctx) PT_REGS_PARM5(ctx)
#define PT_REGS_RC_CORE(ctx) PT_REGS_RC(ctx)
#define PT_REGS_IP_CORE(ctx) PT_REGS_IP(ctx)
#define PT_REGS_SP_CORE(ctx) PT_REGS_SP(ctx)
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
    BPF_MAP_TYPE_PROG_ARRAY = 3, BPF_MAP_TYPE_LPM_TRIE = 11, BPF_MAP_TYPE_ARRAY_OF_MAPS = 12, BPF_MAP_TYPE_HASH_OF_MAPS = 13,
    BPF_MAP_TYPE_TASK_STORAGE = 29, BPF_MAP_TYPE_BLOOM_FILTER = 30,
    BPF_MAP_TYPE_USER_RINGBUF = 31,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_EXIST = 2 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_RING_SIZE = 1, BPF_RB_CONS_POS = 2, BPF_RB_PROD_POS = 3 };
#define BPF_F_USER_STACK (1ULL << 8)
#define BPF_F_FAST_STACK_CMP (1ULL << 9)
#define BPF_F_REUSE_STACKID (1ULL << 10)
#define BPF_F_NO_PREALLOC (1U << 0)
#define BPF_F_INDEX_MASK 0xffffffffULL
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define TASK_COMM_LEN 16
#define BPF_F_CURRENT_CPU 0xffffffffULL

/* Asked by bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_func_ip): the helpers that there are here. */
enum bpf_func_id {
    BPF_FUNC_map_lookup_elem = 1, BPF_FUNC_map_update_elem = 2, BPF_FUNC_map_delete_elem = 3,
    BPF_FUNC_probe_read = 4, BPF_FUNC_ktime_get_ns = 5, BPF_FUNC_trace_printk = 6, BPF_FUNC_get_prandom_u32 = 7,
    BPF_FUNC_get_smp_processor_id = 8, BPF_FUNC_tail_call = 12, BPF_FUNC_get_current_pid_tgid = 14,
    BPF_FUNC_get_current_uid_gid = 15, BPF_FUNC_get_current_comm = 16, BPF_FUNC_perf_event_output = 25,
    BPF_FUNC_get_stackid = 27, BPF_FUNC_get_current_task = 35, BPF_FUNC_probe_read_str = 45,
    BPF_FUNC_override_return = 58, BPF_FUNC_get_stack = 67, BPF_FUNC_map_push_elem = 87, BPF_FUNC_map_pop_elem = 88,
    BPF_FUNC_map_peek_elem = 89, BPF_FUNC_strtol = 105, BPF_FUNC_strtoul = 106, BPF_FUNC_probe_read_user = 112,
    BPF_FUNC_probe_read_kernel = 113, BPF_FUNC_probe_read_user_str = 114, BPF_FUNC_probe_read_kernel_str = 115,
    BPF_FUNC_jiffies64 = 118, BPF_FUNC_ktime_get_boot_ns = 125, BPF_FUNC_ringbuf_output = 130,
    BPF_FUNC_ringbuf_reserve = 131, BPF_FUNC_ringbuf_submit = 132, BPF_FUNC_ringbuf_discard = 133,
    BPF_FUNC_ringbuf_query = 134, BPF_FUNC_copy_from_user = 148, BPF_FUNC_task_storage_get = 156,
    BPF_FUNC_task_storage_delete = 157, BPF_FUNC_get_current_task_btf = 158, BPF_FUNC_ktime_get_coarse_ns = 160,
    BPF_FUNC_snprintf = 165, BPF_FUNC_get_func_ip = 173, BPF_FUNC_get_attach_cookie = 174,
    BPF_FUNC_trace_vprintk = 177, BPF_FUNC_strncmp = 182, BPF_FUNC_dynptr_from_mem = 197,
    BPF_FUNC_ringbuf_reserve_dynptr = 198, BPF_FUNC_ringbuf_submit_dynptr = 199,
    BPF_FUNC_ringbuf_discard_dynptr = 200, BPF_FUNC_dynptr_read = 201, BPF_FUNC_dynptr_write = 202,
    BPF_FUNC_dynptr_data = 203, BPF_FUNC_ktime_get_tai_ns = 208
};

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
static long (*const bpf_tail_call)(void *ctx, void *prog_array, __u32 index) = (void *)12;
static __u64 (*const bpf_get_current_uid_gid)(void) = (void *)15;
static __u64 (*const bpf_get_current_task)(void) = (void *)35;
static long (*const bpf_strtol)(const char *buf, __u64 buf_len, __u64 flags, long *res) = (void *)105;
static long (*const bpf_strtoul)(const char *buf, __u64 buf_len, __u64 flags, unsigned long *res) = (void *)106;
static __u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_copy_from_user)(void *dst, __u32 size, const void *guest) = (void *)148;
static void *(*const bpf_task_storage_get)(void *map, void *task, void *value, __u64 flags) = (void *)156;
static long (*const bpf_task_storage_delete)(void *map, void *task) = (void *)157;
static void *(*const bpf_get_current_task_btf)(void) = (void *)158;
static __u64 (*const bpf_ktime_get_coarse_ns)(void) = (void *)160;
static long (*const bpf_for_each_map_elem)(void *map, void *callback, void *callback_ctx, __u64 flags) = (void *)164;
static long (*const bpf_loop)(__u32 rounds, void *callback, void *callback_ctx, __u64 flags) = (void *)181;
static __u64 (*const bpf_ktime_get_tai_ns)(void) = (void *)208;
struct bpf_dynptr { __u64 opaque[2]; } __attribute__((aligned(8)));
static long (*const bpf_dynptr_from_mem)(void *data, __u64 size, __u64 flags, struct bpf_dynptr *ptr) = (void *)197;
static long (*const bpf_ringbuf_reserve_dynptr)(void *ringbuf, __u32 size, __u64 flags, struct bpf_dynptr *ptr) = (void *)198;
static void (*const bpf_ringbuf_submit_dynptr)(struct bpf_dynptr *ptr, __u64 flags) = (void *)199;
static void (*const bpf_ringbuf_discard_dynptr)(struct bpf_dynptr *ptr, __u64 flags) = (void *)200;
static long (*const bpf_dynptr_read)(void *dst, __u64 len, const struct bpf_dynptr *src, __u64 offset, __u64 flags) = (void *)201;
static long (*const bpf_dynptr_write)(const struct bpf_dynptr *dst, __u64 offset, void *src, __u64 len, __u64 flags) = (void *)202;
static void *(*const bpf_dynptr_data)(const struct bpf_dynptr *ptr, __u64 offset, __u64 len) = (void *)203;
static long (*const bpf_user_ringbuf_drain)(void *map, void *callback, void *callback_ctx, __u64 flags) = (void *)209;
extern __u32 bpf_dynptr_size(const struct bpf_dynptr *ptr) __weak __ksym;
extern bool bpf_dynptr_is_null(const struct bpf_dynptr *ptr) __weak __ksym;
extern bool bpf_dynptr_is_rdonly(const struct bpf_dynptr *ptr) __weak __ksym;
extern int bpf_dynptr_adjust(const struct bpf_dynptr *ptr, __u32 start, __u32 end) __weak __ksym;
extern int bpf_dynptr_clone(const struct bpf_dynptr *ptr, struct bpf_dynptr *clone) __weak __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *ptr, __u32 offset, void *buffer, __u32 size) __weak __ksym;
extern void *bpf_dynptr_slice_rdwr(const struct bpf_dynptr *ptr, __u32 offset, void *buffer, __u32 size) __weak __ksym;
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
#define BPF_UPROBE(name, args...) BPF_KPROBE(name, ##args)
#define BPF_URETPROBE(name, args...) BPF_KRETPROBE(name, ##args)
#define BPF_KSYSCALL(name, args...) BPF_KPROBE(name, ##args)
#define BPF_KPROBE_SYSCALL(name, args...) BPF_KPROBE(name, ##args)

/* fentry and fexit find a list of arguments, and behind these the result. */
#define ____list0() (void *)ctx
#define ____list1(x) ____list0(), (void *)ctx[0]
#define ____list2(x, ...) ____list1(__VA_ARGS__), (void *)ctx[1]
#define ____list3(x, ...) ____list2(__VA_ARGS__), (void *)ctx[2]
#define ____list4(x, ...) ____list3(__VA_ARGS__), (void *)ctx[3]
#define ____list5(x, ...) ____list4(__VA_ARGS__), (void *)ctx[4]
#define ____list6(x, ...) ____list5(__VA_ARGS__), (void *)ctx[5]
#define ____list7(x, ...) ____list6(__VA_ARGS__), (void *)ctx[6]
#define ____list8(x, ...) ____list7(__VA_ARGS__), (void *)ctx[7]
#define ____list9(x, ...) ____list8(__VA_ARGS__), (void *)ctx[8]
#define ____list10(x, ...) ____list9(__VA_ARGS__), (void *)ctx[9]
#define ____list11(x, ...) ____list10(__VA_ARGS__), (void *)ctx[10]
#define ____list12(x, ...) ____list11(__VA_ARGS__), (void *)ctx[11]
#define ____list(...) ____bpf_concat(____list, ____bpf_narg(__VA_ARGS__))(__VA_ARGS__)
#define BPF_PROG(name, args...)                                                            \
    name(unsigned long long *ctx);                                                         \
    static __always_inline int ____##name(unsigned long long *ctx, ##args);                \
    int name(unsigned long long *ctx)                                                      \
    {                                                                                      \
        ____quietly("GCC diagnostic push")                                                 \
        ____quietly("GCC diagnostic ignored \"-Wint-conversion\"")                         \
        return ____##name(____list(args));                                                 \
        ____quietly("GCC diagnostic pop")                                                  \
    }                                                                                      \
    static __always_inline int ____##name(unsigned long long *ctx, ##args)

/* Static tracepoints: int BPF_USDT(on_marker, int n, char *text), or bpf_usdt_arg(ctx, 0, &n). */
static long (*const ____usdt_argument)(void *ctx, __u64 n, void *out, __u32 size) = (void *)0x4b500004;
static __always_inline int bpf_usdt_arg(struct pt_regs *ctx, __u64 n, long *out)
{
    return ____usdt_argument(ctx, n, out, sizeof(*out));
}
static __always_inline long ____usdt(struct pt_regs *ctx, __u64 n)
{
    long v = 0;
    ____usdt_argument(ctx, n, &v, sizeof(v));
    return v;
}
#define bpf_usdt_cookie(ctx) bpf_get_attach_cookie(ctx)
#define ____marks0() ctx
#define ____marks1(x) ____marks0(), (void *)____usdt(ctx, 0)
#define ____marks2(x, ...) ____marks1(__VA_ARGS__), (void *)____usdt(ctx, 1)
#define ____marks3(x, ...) ____marks2(__VA_ARGS__), (void *)____usdt(ctx, 2)
#define ____marks4(x, ...) ____marks3(__VA_ARGS__), (void *)____usdt(ctx, 3)
#define ____marks5(x, ...) ____marks4(__VA_ARGS__), (void *)____usdt(ctx, 4)
#define ____marks6(x, ...) ____marks5(__VA_ARGS__), (void *)____usdt(ctx, 5)
#define ____marks7(x, ...) ____marks6(__VA_ARGS__), (void *)____usdt(ctx, 6)
#define ____marks8(x, ...) ____marks7(__VA_ARGS__), (void *)____usdt(ctx, 7)
#define ____marks9(x, ...) ____marks8(__VA_ARGS__), (void *)____usdt(ctx, 8)
#define ____marks10(x, ...) ____marks9(__VA_ARGS__), (void *)____usdt(ctx, 9)
#define ____marks11(x, ...) ____marks10(__VA_ARGS__), (void *)____usdt(ctx, 10)
#define ____marks12(x, ...) ____marks11(__VA_ARGS__), (void *)____usdt(ctx, 11)
#define ____marks(...) ____bpf_concat(____marks, ____bpf_narg(__VA_ARGS__))(__VA_ARGS__)
#define BPF_USDT(name, args...) ____typed(name, ____marks, ##args)

/* A session, SEC("kprobe.session/function"): the entry leaves a number for its own return. */
/* Without a prototype: Linux has given both a parameter, the context, which matters nothing here. */
____quietly("GCC diagnostic push")
____quietly("GCC diagnostic ignored \"-Wstrict-prototypes\"")
extern __u64 *bpf_session_cookie() __weak __ksym;
extern bool bpf_session_is_return() __weak __ksym;
____quietly("GCC diagnostic pop")

/* bpf_for(i, from, to) { ... }; bpf_repeat(n) { ... }: loops of any length. */
struct bpf_iter_num { __u64 opaque; };
extern int bpf_iter_num_new(struct bpf_iter_num *it, int from, int to) __weak __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __weak __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __weak __ksym;
#define bpf_for(i, from, to)                                                               \
    for (struct bpf_iter_num ____it __attribute__((cleanup(bpf_iter_num_destroy))),        \
             *____begun __attribute__((unused)) = (bpf_iter_num_new(&____it, (from), (to)), (void *)0); \
         ({ int *____at = bpf_iter_num_next(&____it); ____at && ((i) = *____at, (i) >= (from) && (i) < (to)); });)
#define bpf_repeat(n)                                                                      \
    for (struct bpf_iter_num ____it __attribute__((cleanup(bpf_iter_num_destroy))),        \
             *____begun __attribute__((unused)) = (bpf_iter_num_new(&____it, 0, (n)), (void *)0);       \
         bpf_iter_num_next(&____it);)

/* A lock in a map's value. On one CPU it is free at once: no program is interrupted by another one. */
struct bpf_spin_lock { __u32 val; };
static __always_inline long bpf_spin_lock(struct bpf_spin_lock *lock)
{
    bpf_repeat(1 << 23)
        if (!__sync_lock_test_and_set(&lock->val, 1))
            break;
    return 0;
}
static __always_inline long bpf_spin_unlock(struct bpf_spin_lock *lock)
{
    __sync_lock_test_and_set(&lock->val, 0);
    return 0;
}

/* Timers: a program that calls these is refused. */
struct bpf_timer { __u64 ____opaque[2]; } __attribute__((aligned(8)));
static long (*const bpf_timer_init)(struct bpf_timer *timer, void *map, __u64 flags) = (void *)169;
static long (*const bpf_timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*const bpf_timer_start)(struct bpf_timer *timer, __u64 nsecs, __u64 flags) = (void *)171;
static long (*const bpf_timer_cancel)(struct bpf_timer *timer) = (void *)172;

/* CO-RE: numbers of the guest's types, put in where the program is attached. */
#ifndef __preserve
#define __preserve __attribute__((preserve_access_index))
#endif
#define bpf_core_field_offset(...) __builtin_preserve_field_info(____field(__VA_ARGS__), 0)
#define bpf_core_field_size(...) __builtin_preserve_field_info(____field(__VA_ARGS__), 1)
#define bpf_core_field_exists(...) __builtin_preserve_field_info(____field(__VA_ARGS__), 2)
#define ____field1(field) (field)
#define ____field2(type, field) (((type *)0)->field)
#define ____field(...) ____bpf_concat(____field, ____bpf_narg(__VA_ARGS__))(__VA_ARGS__)
#define bpf_core_type_exists(type) __builtin_preserve_type_info(*(__typeof__(type) *)0, 0)
#define bpf_core_type_size(type) __builtin_preserve_type_info(*(__typeof__(type) *)0, 1)
#define bpf_core_type_matches(type) __builtin_preserve_type_info(*(__typeof__(type) *)0, 2)
#define bpf_core_enum_value_exists(type, value) __builtin_preserve_enum_value(*(__typeof__(type) *)value, 0)
#define bpf_core_enum_value(type, value) __builtin_preserve_enum_value(*(__typeof__(type) *)value, 1)
#define bpf_core_read(dst, size, src) bpf_probe_read_kernel(dst, size, (const void *)__builtin_preserve_access_index(src))
#define bpf_core_read_user(dst, size, src) bpf_core_read(dst, size, src)
#define bpf_core_read_str(dst, size, src) bpf_probe_read_kernel_str(dst, size, (const void *)__builtin_preserve_access_index(src))
#define bpf_core_read_user_str(dst, size, src) bpf_core_read_str(dst, size, src)
/* A member as a number: as many bytes as the guest has of it, in the guest's byte order; structures as they are. */
__asm__(".pushsection .kprobes.header,\"\",@progbits; .byte 1; .popsection");
static __u64 (*const ____guest_is_big)(void) = (void *)0x4b500007;
static __always_inline __u64 ____number(const void *at, __u32 size, __u32 sign)
{
    __u64 v = 0;
    __u32 left = 64 - 8 * size;
    if (size == 1) { __u8 n = 0; bpf_probe_read(&n, 1, at); v = n; }
    else if (size == 2) { __u16 n = 0; bpf_probe_read(&n, 2, at); v = ____guest_is_big() ? __builtin_bswap16(n) : n; }
    else if (size == 4) { __u32 n = 0; bpf_probe_read(&n, 4, at); v = ____guest_is_big() ? __builtin_bswap32(n) : n; }
    else { bpf_probe_read(&v, 8, at); v = ____guest_is_big() ? __builtin_bswap64(v) : v; }
    return sign ? (__u64)((__s64)(v << left) >> left) : v;
}
#define ____is_signed(src, member) _Generic((src)->member, char: 1, signed char: 1, short: 1, int: 1,    \
                                            long: 1, long long: 1, default: 0)
#define ____is_record(x) (__builtin_classify_type(x) >= 12)
/* What `src` is comes first into a variable: clang takes no access that is preserved in another one. */
#define ____read(src, member) ({                                                                       \
    __typeof__(&(src)[0]) ____s = (src);                                                               \
    __typeof__(____s->member) ____v;                                                                   \
    if (____is_record(____s->member))                                                                  \
        bpf_core_read(&____v, sizeof(____v), &____s->member);                                          \
    else {                                                                                             \
        __u64 ____n = ____number((const void *)__builtin_preserve_access_index(&____s->member),        \
                                 __builtin_preserve_field_info(____s->member, 1),                      \
                                 ____is_signed(____s, member));                                        \
        ____store(&____v, ____n, sizeof(____v));                                                       \
    }                                                                                                  \
    ____v; })
static __always_inline void ____store(void *to, __u64 n, __u32 size)
{
    if (size == 1) *(__u8 *)to = n;
    else if (size == 2) *(__u16 *)to = n;
    else if (size == 4) *(__u32 *)to = n;
    else *(__u64 *)to = n;
}
#define ____core1(src, a) ____read(src, a)
#define ____core2(src, a, b) ({ __typeof__((src)->a) ____p2 = ____read(src, a); ____core1(____p2, b); })
#define ____core3(src, a, b, c) ({ __typeof__((src)->a) ____p3 = ____read(src, a); ____core2(____p3, b, c); })
#define ____core4(src, a, b, c, d) ({ __typeof__((src)->a) ____p4 = ____read(src, a); ____core3(____p4, b, c, d); })
#define ____core5(src, a, b, c, d, e) ({ __typeof__((src)->a) ____p5 = ____read(src, a); ____core4(____p5, b, c, d, e); })
#define ____core6(src, a, b, c, d, e, f) ({ __typeof__((src)->a) ____p6 = ____read(src, a); ____core5(____p6, b, c, d, e, f); })
#define ____core7(src, a, b, c, d, e, f, g) ({ __typeof__((src)->a) ____p7 = ____read(src, a); ____core6(____p7, b, c, d, e, f, g); })
#define ____core8(src, a, b, c, d, e, f, g, h) ({ __typeof__((src)->a) ____p8 = ____read(src, a); ____core7(____p8, b, c, d, e, f, g, h); })
#define ____core9(src, a, b, c, d, e, f, g, h, i) ({ __typeof__((src)->a) ____p9 = ____read(src, a); ____core8(____p9, b, c, d, e, f, g, h, i); })
#define BPF_CORE_READ(src, a, ...) ____bpf_concat(____core, ____bpf_narg(a, ##__VA_ARGS__))(src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_USER(src, a, ...) BPF_CORE_READ(src, a, ##__VA_ARGS__)
#define BPF_PROBE_READ(src, a, ...) BPF_CORE_READ(src, a, ##__VA_ARGS__)
#define BPF_PROBE_READ_USER(src, a, ...) BPF_CORE_READ(src, a, ##__VA_ARGS__)
/* Into *dst: arrays of characters as they are, numbers as many bytes as *dst has; and text up to its NUL. */
#define ____is_text(at) _Generic((at), char (*)[sizeof(*(at))]: 1, signed char (*)[sizeof(*(at))]: 1,   \
                                 unsigned char (*)[sizeof(*(at))]: 1, default: 0)
#define ____into1(dst, src, a) ({                                                                      \
    __typeof__(&(src)[0]) ____s = (src);                                                               \
    if (____is_record(*(dst)) || ____is_text(dst))                                                     \
        bpf_core_read(dst, sizeof(*(dst)), &____s->a);                                                 \
    else                                                                                               \
        ____store(dst, ____number((const void *)__builtin_preserve_access_index(&____s->a),            \
                                  __builtin_preserve_field_info(____s->a, 1), ____is_signed(____s, a)), \
                  sizeof(*(dst)));                                                                     \
    0; })
#define ____text1(dst, src, a) ({                                                                      \
    __typeof__(&(src)[0]) ____s = (src);                                                               \
    bpf_core_read_str(dst, sizeof(*(dst)), &____s->a); })
#define ____into2(dst, src, a, b) ({ __typeof__((src)->a) ____p2 = ____read(src, a); ____into1(dst, ____p2, b); })
#define ____into3(dst, src, a, b, c) ({ __typeof__((src)->a) ____p3 = ____read(src, a); ____into2(dst, ____p3, b, c); })
#define ____into4(dst, src, a, b, c, d) ({ __typeof__((src)->a) ____p4 = ____read(src, a); ____into3(dst, ____p4, b, c, d); })
#define ____into5(dst, src, a, b, c, d, e) ({ __typeof__((src)->a) ____p5 = ____read(src, a); ____into4(dst, ____p5, b, c, d, e); })
#define ____into6(dst, src, a, b, c, d, e, f) ({ __typeof__((src)->a) ____p6 = ____read(src, a); ____into5(dst, ____p6, b, c, d, e, f); })
#define ____into7(dst, src, a, b, c, d, e, f, g) ({ __typeof__((src)->a) ____p7 = ____read(src, a); ____into6(dst, ____p7, b, c, d, e, f, g); })
#define ____into8(dst, src, a, b, c, d, e, f, g, h) ({ __typeof__((src)->a) ____p8 = ____read(src, a); ____into7(dst, ____p8, b, c, d, e, f, g, h); })
#define ____into9(dst, src, a, b, c, d, e, f, g, h, i) ({ __typeof__((src)->a) ____p9 = ____read(src, a); ____into8(dst, ____p9, b, c, d, e, f, g, h, i); })
#define ____text2(dst, src, a, b) ({ __typeof__((src)->a) ____p2 = ____read(src, a); ____text1(dst, ____p2, b); })
#define ____text3(dst, src, a, b, c) ({ __typeof__((src)->a) ____p3 = ____read(src, a); ____text2(dst, ____p3, b, c); })
#define ____text4(dst, src, a, b, c, d) ({ __typeof__((src)->a) ____p4 = ____read(src, a); ____text3(dst, ____p4, b, c, d); })
#define ____text5(dst, src, a, b, c, d, e) ({ __typeof__((src)->a) ____p5 = ____read(src, a); ____text4(dst, ____p5, b, c, d, e); })
#define ____text6(dst, src, a, b, c, d, e, f) ({ __typeof__((src)->a) ____p6 = ____read(src, a); ____text5(dst, ____p6, b, c, d, e, f); })
#define ____text7(dst, src, a, b, c, d, e, f, g) ({ __typeof__((src)->a) ____p7 = ____read(src, a); ____text6(dst, ____p7, b, c, d, e, f, g); })
#define ____text8(dst, src, a, b, c, d, e, f, g, h) ({ __typeof__((src)->a) ____p8 = ____read(src, a); ____text7(dst, ____p8, b, c, d, e, f, g, h); })
#define ____text9(dst, src, a, b, c, d, e, f, g, h, i) ({ __typeof__((src)->a) ____p9 = ____read(src, a); ____text8(dst, ____p9, b, c, d, e, f, g, h, i); })
#define BPF_CORE_READ_INTO(dst, src, a, ...) ____bpf_concat(____into, ____bpf_narg(a, ##__VA_ARGS__))(dst, src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_USER_INTO(dst, src, a, ...) BPF_CORE_READ_INTO(dst, src, a, ##__VA_ARGS__)
#define BPF_PROBE_READ_INTO(dst, src, a, ...) BPF_CORE_READ_INTO(dst, src, a, ##__VA_ARGS__)
#define BPF_PROBE_READ_USER_INTO(dst, src, a, ...) BPF_CORE_READ_INTO(dst, src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_STR_INTO(dst, src, a, ...) ____bpf_concat(____text, ____bpf_narg(a, ##__VA_ARGS__))(dst, src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_USER_STR_INTO(dst, src, a, ...) BPF_CORE_READ_STR_INTO(dst, src, a, ##__VA_ARGS__)
#define BPF_PROBE_READ_STR_INTO(dst, src, a, ...) BPF_CORE_READ_STR_INTO(dst, src, a, ##__VA_ARGS__)
#define BPF_PROBE_READ_USER_STR_INTO(dst, src, a, ...) BPF_CORE_READ_STR_INTO(dst, src, a, ##__VA_ARGS__)
#define BPF_CORE_READ_BITFIELD_PROBED(s, field) ({                                                     \
    unsigned long long ____bits = 0;                                                                   \
    ____bits = ____number((const void *)(s) + __builtin_preserve_field_info((s)->field, 0),            \
                          __builtin_preserve_field_info((s)->field, 1), 0);                            \
    ____bits <<= __builtin_preserve_field_info((s)->field, 4);                                         \
    __builtin_preserve_field_info((s)->field, 3)                                                       \
        ? (unsigned long long)((long long)____bits >> __builtin_preserve_field_info((s)->field, 5))    \
        : ____bits >> __builtin_preserve_field_info((s)->field, 5); })

/* Byte order, as <bpf/bpf_endian.h> has it: of networks, which is big. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ____to_big(bits, x) __builtin_bswap##bits(x)
#define ____to_little(bits, x) (x)
#else
#define ____to_big(bits, x) (x)
#define ____to_little(bits, x) __builtin_bswap##bits(x)
#endif
#define bpf_htons(x) ____to_big(16, x)
#define bpf_ntohs(x) ____to_big(16, x)
#define bpf_htonl(x) ____to_big(32, x)
#define bpf_ntohl(x) ____to_big(32, x)
#define bpf_cpu_to_be64(x) ____to_big(64, x)
#define bpf_be64_to_cpu(x) ____to_big(64, x)
#define bpf_cpu_to_le64(x) ____to_little(64, x)
#define bpf_le64_to_cpu(x) ____to_little(64, x)

/* Registers by name: KPROBES_REG(ctx, arm64_x19). Made from the architectures by docs/generate.py. */
#include <kprobes/registers.h>
#endif
