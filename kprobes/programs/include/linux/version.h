/* linux/version.h: In place of Linux's. All of it is in <kprobes/bpf.h>. */
#include <kprobes/bpf.h>
