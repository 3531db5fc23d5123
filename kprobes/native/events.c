/* Hits of events, recorded without Python: numbers from registers and memory, a filter of numbers,
 * a record in a ring.
 *
 * A record is what programs write (kprobes/events/_program.py), and the ring theirs
 * (kprobes/programs/maps/ring.py). Everything is fetched before anything is changed: where
 * something is not usual (memory that is not the machine's own, guest tasks, registers of somebody
 * else) the handler in Python is called, which begins anew. A guest's words are only compared, and
 * looked up.
 */
#include "python.h"
#include "guest.h"

#define TASKS 4   /* byte of the gate: see kprobes.machine.unicorn.host.hostcode */
#define RECORD 512 /* the most words of a record, as in kprobes.machine.unicorn.host.recording */

/* A number, and where it is in the record.
 *
 *   root, number    a word: of a register, the stack pointer, pc, `number` itself, or what was
 *                   saved at the entry as the number-th
 *   deep, steps     numbers to be added one after the other, after each of which the word there is
 *                   loaded
 *   size            bytes of the number in memory, then no word is loaded after the last step; 0:
 *                   it is the word
 *   count           elements of an array
 *   shift, bits, is_signed   what is kept of it
 *   at              its place in the record, in words
 */
#define NUMBER_WORDS(X) \
    X(root) X(number) X(deep) X(steps) X(size) X(count) X(shift) X(bits) X(is_signed) X(at)
EXPORT const char number_words[] = NUMBER_WORDS(NAME);
enum { REGISTER, SP, PC, VALUE, SAVED };
struct number { NUMBER_WORDS(WORD) struct place place; };

/* A comparison of a filter.
 *
 *   of              struct number
 *   how             see enum
 *   is_signed       numbers have a sign
 *   constant, end   what it is compared with; of WITHIN, the first, and the first behind
 *   yes, no         the next comparison, counted from 0; PASS, FAIL
 */
#define TEST_WORDS(X) X(of) X(how) X(is_signed) X(constant) X(end) X(yes) X(no)
EXPORT const char test_words[] = TEST_WORDS(NAME);
enum { EQUAL, LESS, LESS_OR_EQUAL, COMMON_BITS, WITHIN };
#define PASS ~0ull
#define FAIL ~1ull
struct test { TEST_WORDS(WORD) };

/* An event at one place. Python makes and keeps it; objects are Python's, which keeps them.
 *
 *   view, regs      words of the CPU's registers, and their object
 *   gate            address of the gate's bytes
 *   state           words of the buffer: records so far; whether any are taken
 *   ring            header of the ring
 *   size            bytes of a record
 *   cookie          its second word
 *   time, returns   places in the record, in words, of the time and of the return address; 0: not
 *                   there
 *   faults, data    the first word of fault bits, and the first behind them
 *   clock, counts   called for the time; where that is 0, address of the time
 *   numbers, many   struct number, one behind the other: fetched and recorded, or saved
 *   tests, first    struct test, one behind the other; the first one's number, PASS: there is no
 *                   filter
 *   kept, saved     attribute of a call's where its data are; key of what was saved there
 */
#define RECORDED_WORDS(X) \
    X(view) X(regs) X(gate) X(state) X(ring) X(size) X(cookie) X(time) X(returns) X(faults) \
    X(data) X(clock) \
    X(counts) X(numbers) X(many) X(tests) X(first) X(kept) X(saved)
EXPORT const char recorded_words[] = RECORDED_WORDS(NAME);
struct recorded { RECORDED_WORDS(WORD) };

/* --- fetching. All give 0 where Python is to do it */

static int load_number(const struct view *view, u64 address, u64 size, u64 *value)
{
    const u8 *at = find(view, address & view->mask, size);
    if (!at)
        return 0;
    u64 number = 0;
    int big = view->swapped == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    for (u64 n = 0; n < size; n++)
        number |= (u64)at[n] << 8 * (big ? size - 1 - n : n);
    *value = number;
    return 1;
}

/* What the entry handler has saved. call: the return probe's instance. */
static int saved_at_entry(const struct recorded *event, PyObject *call, u64 number, u64 *value)
{
    PyObject *data = PyObject_GetAttr(call, OBJECT(event->kept));
    PyObject *saved = data ? PyObject_GetItem(data, OBJECT(event->saved)) : 0;
    /* not a new reference */
    PyObject *item = saved ? PyTuple_GetItem(saved, (Py_ssize_t)number) : 0;
    int there = 0;
    if (item) {
        *value = PyLong_AsUnsignedLongLongMask(item);
        there = *value != ~0ull || !PyErr_Occurred();
    }
    if (saved)
        Py_DecRef(saved);
    if (data)
        Py_DecRef(data);
    if (!there)
        PyErr_Clear(); /* it could not be read there: None */
    return there;
}

static u64 cut(const struct number *number, u64 value)
{
    if (number->bits >= 64)
        return value;
    value <<= 64 - number->shift - number->bits;
    u64 unused = 64 - number->bits;
    return number->is_signed ? (u64)((long long)value >> unused) : value >> unused;
}

static int fetch(const struct recorded *event, const struct number *number, PyObject *call,
                 u64 *out)
{
    const struct view *view = (const struct view *)event->view;
    const u64 *steps = (const u64 *)number->steps;
    u64 value = number->number;
    switch (number->root) {
    case REGISTER:
        value = value_at(&number->place);
        break;
    case SP:
        value = stack_pointer(view);
        break;
    case PC:
        value = regs_of(OBJECT(event->regs))->reported;
        break;
    case SAVED:
        if (!saved_at_entry(event, call, number->number, &value))
            return 0;
        break;
    }
    u64 loads = number->deep - (number->size != 0);
    for (u64 n = 0; n < loads; n++)
        if (!load(view, (value + steps[n]) & view->mask, &value))
            return 0;
    if (!number->size) {
        *out = cut(number, value);
        return 1;
    }
    u64 address = value + steps[loads];
    for (u64 n = 0; n < number->count; n++, address += number->size) {
        if (!load_number(view, address, number->size, &value))
            return 0;
        out[n] = cut(number, value);
    }
    return 1;
}

/* --- the filter */

static int holds(const struct test *test, u64 value)
{
    long long left = (long long)value;
    long long right = (long long)test->constant;
    switch (test->how) {
    case EQUAL:
        return value == test->constant;
    case LESS:
        return test->is_signed ? left < right : value < test->constant;
    case LESS_OR_EQUAL:
        return test->is_signed ? left <= right : value <= test->constant;
    case COMMON_BITS:
        return (value & test->constant) != 0;
    }
    /* of addresses, which have no sign; the end may be 0, behind the last address */
    return value - test->constant < test->end - test->constant;
}

/* 1: the hit is recorded; 0: it is not; -1: Python is to say. */
static int passes(const struct recorded *event, PyObject *call)
{
    u64 next = event->first, value;
    while (next != PASS) {
        if (next == FAIL)
            return 0;
        const struct test *test = (const struct test *)event->tests + next;
        if (!fetch(event, (const struct number *)test->of, call, &value))
            return -1;
        next = holds(test, value) ? test->yes : test->no;
    }
    return 1;
}

/* --- the ring */

enum { CONSUMER, PRODUCER, MASK, RING_LOST, RING_DATA };
#define BUSY (1u << 31)
#define DISCARDED (1u << 30)

static u32 *record_at(const u64 *ring, u64 position)
{
    return (u32 *)((u8 *)ring + ring[RING_DATA] + (position & ring[MASK]));
}

/* Room for a record of `size` bytes, the oldest complete ones go for it: its words, or 0. */
static u64 *reserve(u64 *ring, u64 size)
{
    u64 total = size + 8, room = ring[MASK] + 1;
    while (total <= room && ring[PRODUCER] + total - ring[CONSUMER] > room) {
        u32 length = *record_at(ring, ring[CONSUMER]);
        if (length & BUSY)
            break;
        ring[RING_LOST] += !(length & DISCARDED);
        ring[CONSUMER] += ((u64)(length & ~DISCARDED) + 15) & ~7ull;
    }
    if (ring[PRODUCER] + total - ring[CONSUMER] > room) {
        ring[RING_LOST]++;
        return 0;
    }
    u32 *head = record_at(ring, ring[PRODUCER]);
    head[0] = (u32)size;
    head[1] = 0; /* the CPU */
    ring[PRODUCER] += total;
    return (u64 *)(head + 2);
}

/* --- what Python calls
 *
 * Functions that keep in `self` (address of the words, the plain function, whatever they need).
 */

static struct recorded *words_of(PyObject *self)
{
    return (struct recorded *)PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(self, 0));
}

/* True where the words say what these registers are. */
static int usual(const struct recorded *event, PyObject *regs)
{
    return regs == OBJECT(event->regs) && regs_of(regs)->is_reported && !((u8 *)event->gate)[TASKS];
}

/* 0: Python is to take the hit; -1: something was raised. */
static int taken(const struct recorded *event, PyObject *call, PyObject *regs)
{
    u64 words[RECORD], *state = (u64 *)event->state, time = 0;
    if (!usual(event, regs))
        return 0;
    if (!state[1])
        return 1;
    int passed = passes(event, call);
    if (passed <= 0)
        return passed == 0;
    const struct number *numbers = (const struct number *)event->numbers;
    for (u64 n = 0; n < event->many; n++)
        if (!fetch(event, &numbers[n], call, words + numbers[n].at))
            return 0;
    words[0] = ++state[0];
    words[1] = event->cookie;
    if (event->returns)
        words[event->returns] = regs_of(regs)->reported;
    for (u64 n = event->faults; n < event->data; n++)
        words[n] = 0;
    if (event->time) {
        if (event->clock) {
            PyObject *now = PyObject_CallFunctionObjArgs(OBJECT(event->clock), (PyObject *)0);
            if (!now)
                return -1;
            time = PyLong_AsUnsignedLongLongMask(now);
            Py_DecRef(now);
        } else {
            time = *(u64 *)event->counts;
        }
        words[event->time] = time;
    }
    u64 *record = reserve((u64 *)event->ring, event->size);
    if (record)
        for (u64 n = 0; n < event->size / 8; n++)
            record[n] = words[n];
    return 1;
}

static PyObject *none(void)
{
    Py_IncRef(Py_None);
    return Py_None;
}

static PyObject *take(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    int done = count == 2 ? taken(words_of(self), args[0], args[1]) : 0;
    if (done)
        return done > 0 ? none() : 0;
    return call_with(PyTuple_GetItem(self, 1), args, (__SIZE_TYPE__)count);
}

/* What is to be fetched at the entry, as Python keeps it; 0, without an exception: Python is to do
 * it. */
static PyObject *saved_numbers(const struct recorded *event, PyObject *regs)
{
    const struct number *numbers = (const struct number *)event->numbers;
    u64 words[RECORD];
    if (!usual(event, regs))
        return 0;
    for (u64 n = 0; n < event->many; n++)
        if (!fetch(event, &numbers[n], 0, words + n))
            return 0;
    PyObject *saved = PyTuple_New((Py_ssize_t)event->many);
    for (u64 n = 0; saved && n < event->many; n++) {
        PyObject *number = PyLong_FromUnsignedLongLong(words[n]);
        if (!number) {
            Py_DecRef(saved);
            return 0;
        }
        PyTuple_SetItem(saved, (Py_ssize_t)n, number); /* takes it */
    }
    return saved;
}

static PyObject *save(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const struct recorded *event = words_of(self);
    PyObject *saved = count == 2 ? saved_numbers(event, args[1]) : 0;
    if (saved) {
        PyObject *data = PyDict_New();
        int failed = !data || PyDict_SetItem(data, OBJECT(event->saved), saved)
                     || PyObject_SetAttr(args[0], OBJECT(event->kept), data);
        if (data)
            Py_DecRef(data);
        Py_DecRef(saved);
        return failed ? 0 : none();
    }
    if (PyErr_Occurred())
        return 0;
    return call_with(PyTuple_GetItem(self, 1), args, (__SIZE_TYPE__)count);
}

static PyMethodDef taking = {"take", (PyCFunction)(void *)take, METH_FASTCALL, 0};
static PyMethodDef saving = {"save", (PyCFunction)(void *)save, METH_FASTCALL, 0};

/* The functions, as Python calls them. */
EXPORT PyObject *event_taker(PyObject *self) { return PyCFunction_NewEx(&taking, self, 0); }
EXPORT PyObject *event_saver(PyObject *self) { return PyCFunction_NewEx(&saving, self, 0); }
