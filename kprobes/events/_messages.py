"""Messages for errors in a definition, by Linux's error names."""

from __future__ import annotations

import errno

from ..errors import EventError
from ._styles import STYLES

_TYPES = (
    f"{' '.join(style.written for style in STYLES.values() if style.written)} "
    "b<width>@<offset>/<size>, [count] behind it for an array"
)
_ERRNO = {
    "ARG_TOO_LONG": errno.E2BIG,
    "TOO_MANY_ARGS": errno.E2BIG,
    "EVENT_TOO_BIG": errno.E2BIG,
    "NOSUP_BTFARG": errno.EOPNOTSUPP,
    "TRIGGER_EXISTS": errno.EEXIST,
    "NO_SUCH_TRIGGER": errno.ENOENT,
    "NON_UNIQ_SYMBOL": errno.EADDRNOTAVAIL,
}

#: What is wrong, and what to do. BAD_PROBE_TYPE is ours: Linux has no name for an unknown first
#: letter.
MESSAGES = {
    "BAD_PROBE_TYPE": "an event starts with p (probe), r (return probe), f (function) or w "
    "(watchpoint), not {!r}; write {}",
    "NO_EPROBES": "events on other events (e:) are not supported; fetch the same in the event "
    "itself, or add a trigger to it",
    "NO_TRACEPOINTS": "tracepoints of the kernel's (t:) are not supported; write p %PROVIDER:NAME "
    "for a marker of the program's, or p FUNCTION",
    "NO_SYNTHETIC": "synthetic events (s:) are not supported; join the records yourself, by "
    "time and task",
    "BAD_FPROBE": "{!r} is no function's entry, and f events sit on entries and returns only; "
    "write FUNCTION or FUNCTION%return, or p instead of f",
    "BAD_MAXACT_TYPE": "only return probes take a count of instances; drop {!r}, or write r, or "
    "FUNCTION%return",
    "BAD_MAXACT": "{!r} is no count of instances; write 1 to 4096, or nothing",
    "MAXACT_TOO_BIG": "{} instances are too many; write 4096 at most",
    "NO_GROUP_NAME": "the group's name is empty; write one before the slash, or drop the slash",
    "GROUP_TOO_LONG": "the group's name {!r} is too long; shorten it to 63 characters",
    "BAD_GROUP_NAME": "{!r} is no group name; use letters, digits and _, no digit first",
    "NO_EVENT_NAME": "there is no name behind the colon; write one, or drop the colon",
    "EVENT_TOO_LONG": "the event's name {!r} is too long; shorten it to 63 characters",
    "BAD_EVENT_NAME": "{!r} is no event name; use letters, digits and _, no digit first",
    "BAD_ADDR_SUFFIX": "a place cannot end in {!r}; write %return, or use r instead of p",
    "BAD_ACCESS_FMT": "{!r} is no memory to watch; write [r|w|rw]@SYMBOL[+OFFSET][:BYTES]",
    "BAD_ACCESS_TYPE": "{!r} is no access; write r, w or rw before the @",
    "BAD_ACCESS_LEN": "{!r} is no number of bytes to watch; write 1 to 65536",
    "BAD_PROBE_ADDR": "{}",
    "BAD_REFCNT": "{!r} is no address of a reference counter; write PLACE(ADDRESS)",
    "NON_UNIQ_SYMBOL": "{}",
    "BAD_RETPROBE": "{!r} is no function entry, and return probes sit on entries only; drop the "
    "offset, or use p",
    "NO_ARG_NAME": "there is no name before the equals sign; write NAME=FETCH",
    "ARG_NAME_TOO_LONG": "the argument's name {!r} is too long; shorten it to 32 characters",
    "BAD_ARG_NAME": "{!r} is no argument name; use letters, digits and _, no digit first",
    "USED_ARG_NAME": "the argument name {!r} is taken; choose another",
    "NO_ARG_BODY": "there is nothing behind the equals sign; write what to fetch, such as $arg1 "
    "or %register",
    "ARG_TOO_LONG": "the expression has {} characters; shorten it to 63",
    "TOO_MANY_ARGS": "an event takes 128 arguments; leave some out from here on",
    "EVENT_TOO_BIG": "one hit would record {} bytes, 3072 is the limit; fetch fewer or smaller "
    "arguments",
    "BAD_FETCH_ARG": "{!r} cannot be fetched; write %reg $argN $retval $stackN @address @symbol "
    "\\n"
    "umber or +offset(FETCH)",
    "RETVAL_ON_PROBE": "$retval exists when a function returns; write r instead of p",
    "BAD_STACK_NUM": "{!r} is no word of the stack; write $stack0 to $stack2048",
    "BAD_ARG_NUM": "{!r} is no argument; write $arg1 to $arg2048",
    "NOFENTRY_ARGS": "{!r} is known at function entry only; fetch a %register here, or name "
    "single arguments of a return event",
    "DOUBLE_ARGS": "$arg* is there already; write it once",
    "BAD_VAR_ARGS": "$arg* stands alone; fetch $arg1, $arg2 ... here",
    "NOSUP_BTFARG": "{!r} needs type information, and there is none of this function; build the "
    "guest with -g, keep -gsplit-dwarf's .dwo files, or write $arg1, $arg2 ... or $retval",
    "NO_BTFARG": "there is no parameter or variable {!r} here; there are: {}",
    "NO_PTR_STRCT": "{!r} can be no member: {} is no structure, or no pointer to one; write -> "
    "behind pointers and . behind structures",
    "NO_BTF_FIELD": "there is no member {!r} in {}; it has {}",
    "NOSUP_DAT_ARG": "{!r} cannot be shown: {}; or fetch registers, +offset(FETCH) or $stackN",
    "NO_RETVAL": "the function returns nothing; leave $retval out, or write $retval:x{} for the "
    "register",
    "BAD_RETVAL_TYPE": "type {!r} does not fit the return register, an integer of {} bits; leave "
    "the type out where debug information has the function, or fetch registers",
    "BAD_ARG_TYPE": "type {!r} does not fit {}, an integer of {} bits; name the parameter where "
    "debug information has the function, or fetch registers",
    "BAD_WORD_TYPE": "type {!r} does not fit {}, which has {} bits; fetch memory, +offset(FETCH), "
    "or all registers that have a part of it",
    "BAD_VAR": "there is no variable {!r} here; {}",
    "BAD_REG_NAME": "{}",
    "BAD_MEM_ADDR": "{!r} is no address: {}",
    "FILE_ON_KPROBE": "file offsets are for user probes; write @address or @symbol+offset",
    "BAD_IMM": "{!r} is no number; write one behind the backslash, or text in double quotes",
    "IMMSTR_NO_CLOSE": "the string is not closed; end it with a double quote, without blanks "
    "inside",
    "DEREF_NEED_BRACE": "{!r} lacks its bracket; write +offset(FETCH)",
    "BAD_DEREF_OFFS": "{!r} is no offset; write a number between the sign and the bracket",
    "DEREF_OPEN_BRACE": "a bracket is not closed; add )",
    "COMM_CANT_DEREF": "$comm is text and has nothing behind it; drop the brackets",
    "TOO_MANY_OPS": "one argument takes 16 steps at most; nest fewer dereferences",
    "BAD_TYPE": "{!r} is no type; use " + _TYPES,
    "BAD_BITFIELD": "{!r} is no bit field within its size; write b<width>@<offset>/<size>, bits "
    "counted from the lowest",
    "BAD_STRING": "type {!r} is read from memory; write +0(FETCH):{} to follow a pointer",
    "NEED_STRING_TYPE": "text cannot be of type {!r}; write string, or no type",
    "ARRAY_NO_CLOSE": "the array's count is not closed; add ]",
    "BAD_ARRAY_SUFFIX": "{!r} cannot follow an array; end the type with ]",
    "BAD_ARRAY_NUM": "{!r} is no count of elements; write 1 to 65536",
    "ARRAY_TOO_BIG": "an array of {} is too big; write 64 at most",
    "DIFF_PROBE_TYPE": "this event is defined with the other kind ({}); choose another name",
    "DIFF_ARG_TYPE": "this event is defined with other arguments ({}); give the same names and "
    "types, or choose another name",
    "INVALID_OP": "{!r} is no operator; write == != < <= > >= & or ~",
    "TOO_MANY_OPEN": "this bracket is not closed; add )",
    "TOO_MANY_CLOSE": "this bracket was never opened; drop it, or add ( before",
    "MISSING_QUOTE": "this quote is not closed; add another",
    "EXPECT_STRING": "this field is text, and {} is none; write it in quotes",
    "EXPECT_DIGIT": "this field is a number, and {} is none; write one without quotes",
    "ILLEGAL_FIELD_OP": "{!r} does not go with {}, which is {}; text takes == != ~, numbers take "
    "== != < <= > >= &",
    "FIELD_NOT_FOUND": "there is no field {!r}; there are {}",
    "ILLEGAL_INTVAL": "{!r} is no number of 64 bits; write it in decimal, or as 0x.. or 0..",
    "INVALID_VALUE": "{!r} is no value; write a number, or text in quotes",
    "TOO_MANY_PREDS": "a filter has 256 tests, 64 brackets deep, at most; make it simpler",
    "INVALID_FILTER": "{!r} does not continue a filter; join tests with && or ||",
    "NO_FILTER": "a test is missing here; write FIELD OPERATOR VALUE",
    "IP_FIELD_ONLY": "functions are compared with == and != to addresses; write "
    "__probe_ip.function == NAME",
    "NO_FUNCTION": "there is no function {!r}; write a symbol, or an address in one",
    "BAD_TRIGGER": "there is no trigger {!r}; there are traceon, traceoff, snapshot, stacktrace, "
    "enable_event, disable_event and hist",
    "BAD_TRIGGER_COUNT": "{!r} is no count; write how often it may act, or nothing",
    "NO_SUCH_EVENT": "there is no event {!r}; define it first",
    "NO_SUCH_TRIGGER": "there is no trigger {!r} to remove; see what there is in .triggers",
    "TRIGGER_EXISTS": "there is {!r} already; remove it first",
    "BAD_HIST_PARAMETER": "unknown hist parameter {!r}; write keys=, vals=, sort=, size=, name=, "
    "clock=, pause, continue, clear or nohitcount",
    "NO_HIST_KEYS": "a histogram needs keys; write hist:keys=FIELD",
    "BAD_HIST_SIZE": "{!r} is no number of entries; write 1 to 131072",
    "BAD_HIST_NAME": "{!r} is no name of a histogram; use letters, digits and _, no digit first",
    "NAMED_MISMATCH": "the histogram {!r} is another, {}; give the same keys, values and sort, or "
    "choose another name",
    "SET_CLOCK_FAIL": "there is no clock {!r} here; times are {}, the host's, in ns",
    "NO_SYSCALLS": "{!r} needs the guest's sys_call_table, whose functions have the names; load a "
    "kernel's symbols, or leave .syscall out",
    "BAD_FIELD_MODIFIER": "{!r} has a modifier that does not go there; there are {}",
    "TEXT_AS_VALUE": "{!r} is text, which cannot be summed up; make it a key",
    "NEED_NOHC_VAL": "without the hit count there must be another value; write vals=FIELD",
    "EMPTY_SORT_FIELD": "there is nothing behind sort=; write a key, a value or hitcount",
    "TOO_MANY_SORT_FIELDS": "rows are sorted by two fields at most; leave some out",
    "INVALID_SORT_FIELD": "{!r} is neither a key nor a value; write one of these, or hitcount",
    "INVALID_SORT_MODIFIER": "{!r} has a modifier that does not go there; write .descending or "
    ".ascending",
    "SAME_PROBE": "the same probe is defined already ({}); leave one out",
}


def make_error(kind: str, position: int, event: str, *facts: object) -> EventError:
    """Return the error of a kind, with its errno.

    Args:
        kind: a key of MESSAGES, which are Linux's names.
        position: column in the definition, from 0.
        event: the definition.
        facts: fill the message's blanks in.
    """
    error = EventError(kind, MESSAGES[kind].format(*facts), event, position)
    error.errno = _ERRNO.get(kind, error.errno)
    return error
