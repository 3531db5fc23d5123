// Each call of string_equal() with its strings, as a stream of records.
#include <kprobes/bpf.h>

struct event {
    u64 left, right;
    char text[16];
};
struct event *unused; // so that Program.types knows the structure

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 16);
} events SEC(".maps");

SEC("kprobe/string_equal")
int BPF_KPROBE(on_equal, const char *left, const char *right)
{
    struct event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

    if (!e)
        return 0;
    e->left = (u64)left;
    e->right = (u64)right;
    __builtin_memset(e->text, 0, sizeof(e->text));
    bpf_probe_read_user_str(e->text, sizeof(e->text), left);
    bpf_ringbuf_submit(e, 0);
    return 0;
}
