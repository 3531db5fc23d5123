// How often crc32() is called with each length.
#include <kprobes/bpf.h>

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, u64);
    __type(value, u64);
} counts SEC(".maps");

SEC("kprobe/crc32")
int on_crc(struct pt_regs *ctx)
{
    u64 length = PT_REGS_PARM3(ctx), one = 1;
    u64 *n = bpf_map_lookup_elem(&counts, &length);

    if (n)
        __sync_fetch_and_add(n, 1);
    else
        bpf_map_update_elem(&counts, &length, &one, BPF_NOEXIST);
    return 0;
}
