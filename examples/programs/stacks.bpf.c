// Who calls fib(): how often from each stack.
#include <kprobes/bpf.h>

struct {
    __uint(type, BPF_MAP_TYPE_STACK_TRACE);
    __uint(max_entries, 1024);
    __uint(key_size, sizeof(u32));
    __uint(value_size, 16 * sizeof(u64));
} stacks SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, s32);
    __type(value, u64);
} counts SEC(".maps");

SEC("kprobe/fib")
int on_fib(struct pt_regs *ctx)
{
    s32 stack = bpf_get_stackid(ctx, &stacks, 0);
    u64 one = 1, *n;

    if (stack < 0)
        return 0;
    n = bpf_map_lookup_elem(&counts, &stack);
    if (n)
        ++*n;
    else
        bpf_map_update_elem(&counts, &stack, &one, BPF_ANY);
    return 0;
}
