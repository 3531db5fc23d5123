/* bpf/bpf_core_read.h: In place of libbpf's. All of it is in <kprobes/bpf.h>. */
#include <kprobes/bpf.h>
