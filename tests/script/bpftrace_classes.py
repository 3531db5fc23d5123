"""Which of bpftrace's runtime tests apply here, and why the others do not: rules, as data."""

import re

import attrs
from script.bpftrace_tests import RuntimeTest

ALONE = "applies without a guest"
GUEST = "applies to a guest"
KERNEL = "needs a live Linux kernel"
ENVIRONMENT = "needs its environment"
REFUSED = "refused here"
KINDS = (ALONE, GUEST, KERNEL, ENVIRONMENT, REFUSED)


@attrs.frozen
class Rule:
    """Tests of one kind, for one reason.

    Attributes:
        kind: one of `KINDS`.
        reason: why, for the table.
        pattern: a regular expression that is searched in the test's `view`.
    """

    kind: str
    reason: str
    pattern: str


def view(test: RuntimeTest) -> str:
    """Return what rules look at: a line for each part of a test, with the part's name."""
    lines = [f"TEST {test.id}", f"TEXT {test.text}"]
    lines += [f"{name} {text}" for name, text in test.fields.items()]
    lines += [f"BEFORE {text}" for text in test.befores]
    lines += [f"REQUIRES {text}" for text in test.requires]
    if not test.on_this_host:
        lines.append("HOST of another architecture")
    return "\n".join(lines)


def _tests(*names: str) -> str:
    return rf"^TEST ({'|'.join(re.escape(name) for name in names)})$"


def _probes(*names: str) -> str:
    """Return a pattern for attach points and for what `-l` is to list."""
    return rf"(?<![\w$@.])({'|'.join(names)}):[^ ]"


#: The first that fits decides; a test that none fits applies without a guest.
RULES = (
    Rule(ENVIRONMENT, "for hosts of another architecture", r"^HOST "),
    Rule(ENVIRONMENT, "tests bpftrace's own test engine", r"^TEST selftest\."),
    Rule(ENVIRONMENT, "switched off in bpftrace, too", r"^REQUIRES bash -c \"exit 1\""),
    Rule(ENVIRONMENT, "counts processors of a changed /sys", r"/sys/devices/system/cpu"),
    Rule(ENVIRONMENT, "namespaces of a Linux host", r"unshare|mountns|^NEW_PIDNS"),
    Rule(ENVIRONMENT, "a program in Go or Rust", r"hello_(go|rust)"),
    Rule(ENVIRONMENT, "strace beside bpftrace", r"\bstrace\b"),
    Rule(
        ENVIRONMENT,
        "frames of a C library without symbols",
        _tests("call.ustack_with_inlined_funcs"),
    ),
    Rule(
        REFUSED,
        "one program runs as the guest: those that it does not load have no probes",
        _tests(
            "usdt.usdt probes - attach to probes by wildcard file",
            "usdt.usdt probes - attach to probes by wildcard file with child",
            "usdt.usdt probes in multiple modules",
            "uprobe.uprobes - probe function in non-executable library",
        ),
    ),
    Rule(REFUSED, "no programs ahead of time: a script is compiled where it runs", r"--aot\b"),
    Rule(
        REFUSED,
        "version, usage and features are those of kprobes",
        _tests(
            "basic.it shows version",
            "basic.it shows usage with help flag",
            "basic.it shows usage with bad flag",
            "basic.info flag",
            "other.named command line params before double dash",
        ),
    ),
    Rule(REFUSED, "no log of a kernel's verifier", _tests("builtin.log size too small")),
    Rule(REFUSED, "no programs inside of ZIP archives", r"\.zip!"),
    Rule(
        REFUSED,
        "no process that runs already: the guest is started by the script's run",
        r"\{\{BEFORE_PID\}\}|pidof usdt|TEXT .* -p ",
    ),
    Rule(
        REFUSED,
        "exit() ends the run at once: this test counts what bpftrace still sees after it",
        _tests("intcast.Sum casted retval"),
    ),
    Rule(
        REFUSED,
        "QEMU's user mode reports no accesses, and no execution of what is not mapped yet",
        r"^TEST watchpoint\.(?!.*(existing thread|absolute address))",
    ),
    Rule(REFUSED, "code without a file format has no names; --base loads it", r"false\.bin"),
    Rule(
        REFUSED,
        "stdlib functions of bpftrace's own, in C",
        r"^TEST interop\.",
    ),
    Rule(REFUSED, "names of users are an operating system's", r"\busername\b"),
    Rule(REFUSED, "frames are shown by their symbols, not by files' build ids", r"\(build_id"),
    Rule(REFUSED, "ustack unwinds by debug information already", r"\bdw_ustack\("),
    Rule(KERNEL, "tracepoints", _probes("tracepoint", "t", "rawtracepoint", "rt")),
    Rule(KERNEL, "a kernel's events", _probes("software", "hardware", r"\*ware")),
    Rule(KERNEL, "iterators over a kernel's objects", _probes("iter")),
    Rule(
        KERNEL,
        "functions of a kernel",
        _probes("k", "kr", "kprobe", "kretprobe", "fentry", "fexit", "kfunc", "kretfunc"),
    ),
    Rule(KERNEL, "lists a kernel's probes", r"(--list|-l) \||-l 'kprobe\*'|-l \"\*\w+\*\""),
    Rule(KERNEL, "types of a kernel", r"task_struct|^TEST btf\.|sizeof_btf|uint64_t\)\)"),
    Rule(KERNEL, "tasks of a kernel", r"curtask|\bcgroup|\bjiffies\b|\bnumaid\b|\bppid\("),
    Rule(KERNEL, "names and parents of processes", r"multi_(threads|procs)"),
    Rule(KERNEL, "a kernel's symbols", r"\bkaddr\(|percpu_kaddr|/proc/kallsyms"),
    Rule(KERNEL, "a kernel's trace pipe", r"debugf\("),
    Rule(KERNEL, "programs and links of a kernel", r"bpftool"),
    Rule(
        KERNEL,
        "scripts with probes of a kernel",
        r"(kprobe|kretprobe|tracepoint\w*|fentry|fexit|hardware|software)_order\w*\.bt",
    ),
    Rule(KERNEL, "probes in BPF programs", r"bpf_attach\.bt"),
    Rule(KERNEL, "semaphores that a kernel raises", r"usdt_file_activation_multiprocess"),
    Rule(
        REFUSED,
        "headers of the host's C library are not looked for: -I says where headers are",
        r"--include|#include",
    ),
    Rule(
        REFUSED,
        "numbers of errors and signals are an operating system's",
        r"\b(strerror|signal_name)\(",
    ),
    Rule(REFUSED, "registers are read by reg()", r"\bctx\)"),
    Rule(
        REFUSED,
        "the address of a variable is one of this computer's, not of the guest's",
        r"&\$\w",
    ),
    Rule(ENVIRONMENT, "libraries made for DWO and DWP files", r"external_debug|_separate_debug"),
    Rule(GUEST, "functions of bash", r"/bin/bash|uprobe_order|uretprobe_order"),
    Rule(GUEST, "functions of a library", r"u(ret)?probe:libc"),
    Rule(GUEST, "statically defined probes", r"testprogs/usdt_|usdt_order|usdt_multi_modules"),
    Rule(GUEST, "one of bpftrace's test programs", r"testprogs/|testlibs/"),
)
_OTHERS = Rule(ALONE, "", "")


def rule_for(test: RuntimeTest) -> Rule:
    """Return the first rule that fits a test."""
    seen = view(test)
    for rule in RULES:
        if re.search(rule.pattern, seen, re.MULTILINE):
            return rule
    return _OTHERS
