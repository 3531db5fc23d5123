/* vmlinux.h: Kernels' sources include it for their types. Types of a guest are its own: declare those that are read, with
 * __attribute__((preserve_access_index)), and their members are found by the guest's debug information. All of it is in <kprobes/bpf.h>. */
#include <kprobes/bpf.h>
