// Every `period`-th call of a function is not made: it returns `error` at once.
#include <kprobes/bpf.h>

const volatile u64 period = 3;
const volatile s64 error = 0;
u64 calls;

SEC("kprobe")
int on_call(struct pt_regs *ctx)
{
    if (++calls % period == 0)
        bpf_override_return(ctx, error);
    return 0;
}
