/* bpf/usdt.bpf.h: In place of libbpf's. All of it is in <kprobes/bpf.h>. */
#include <kprobes/bpf.h>
