// How long crc32() takes, as a histogram of powers of two.
#include <kprobes/bpf.h>

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, u64);
    __type(value, u64);
} begun SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 64);
    __type(key, u32);
    __type(value, u64);
} histogram SEC(".maps");

SEC("kprobe/crc32")
int on_entry(struct pt_regs *ctx)
{
    u64 task = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();

    bpf_map_update_elem(&begun, &task, &now, BPF_ANY);
    return 0;
}

static __always_inline u32 log2(u64 v)
{
    u32 n = 0;

    if (v >> 32) { v >>= 32; n += 32; }
    if (v >> 16) { v >>= 16; n += 16; }
    if (v >> 8) { v >>= 8; n += 8; }
    if (v >> 4) { v >>= 4; n += 4; }
    if (v >> 2) { v >>= 2; n += 2; }
    return n + (v >> 1);
}

SEC("kretprobe/crc32")
int on_return(struct pt_regs *ctx)
{
    u64 task = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();
    u64 *start = bpf_map_lookup_elem(&begun, &task), *n;
    u32 bucket;

    if (!start)
        return 0;
    bucket = log2(now - *start);
    bpf_map_delete_elem(&begun, &task);
    n = bpf_map_lookup_elem(&histogram, &bucket);
    if (n)
        ++*n;
    return 0;
}
