/* stdint.h: In place of the C library's. All of it is in <kprobes/bpf.h>. */
#include <kprobes/bpf.h>
