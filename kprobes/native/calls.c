/* A guest call whose arguments are numbers in registers: the registers are kept and set, the engine
 * runs, and the registers are put back. See kprobes/machine/unicorn/hostcalls.py.
 */
#include "guest.h"

/* What the calls of one CPU have in common.
 *
 *   engine     the engine's handle
 *   kept       the engine's context that the registers of before the call are kept in
 *   save, restore   uc_context_save(), uc_context_restore()
 *   view       struct view: where the registers are
 *   room       bytes below the stack pointer that the function is not to touch
 *   align      of the stack pointer at a call, in bytes
 *   link       address of the return address's register, or of a pointer to a window; 0: it is
 *              pushed
 *   link_at, windowed   bytes from where that pointer points to the register; 1: it is in a window
 *   pushed     bytes of the return address that is pushed
 *   reserve    bytes above the stack pointer, behind a pushed return address, that become 0: a back
 *              chain ends there
 *   until      the return address as the register or the stack has it, mode bits included
 *   stack, bytes, host   a block of memory without code, for the stack: guest address, size, host
 *              address
 */
#define GUEST_CALL_WORDS(X) \
    X(engine) X(kept) X(save) X(restore) X(view) X(room) X(align) X(link) X(link_at) \
    X(windowed) X(pushed) X(reserve) X(until) X(stack) X(bytes) X(host)
EXPORT const char guest_call_words[] = GUEST_CALL_WORDS(NAME);
struct guest_call { GUEST_CALL_WORDS(WORD) };

static struct guest_call *call_of(PyObject *self)
{
    return (struct guest_call *)PyLong_AsUnsignedLongLongMask(self);
}

static void set_value(const struct place *place, u64 value)
{
    u64 address = place->windowed ? *(u64 *)place->base + place->offset : place->base;
    if (place->size == 8)
        *(u64 *)address = value;
    else
        *(u32 *)address = (u32)value;
}

/* The stack pointer and the return address as at the function's entry. 0: the stack is in no block
 * that is known, and nothing has changed. */
static int make_frame(const struct guest_call *call)
{
    const struct view *view = (const struct view *)call->view;
    u64 sp = ((stack_pointer(view) - call->room) / call->align * call->align - call->pushed)
        & view->mask;
    if (call->reserve) {
        u64 offset = sp + call->pushed - call->stack;
        if (offset >= call->bytes || call->bytes - offset < call->reserve)
            return 0;
        /* by volatile: the library has no memset() to call */
        volatile u8 *at = (volatile u8 *)call->host + offset;
        for (u64 n = 0; n < call->reserve; n++)
            at[n] = 0;
    }
    if (call->link) {
        struct place link = {call->link, call->link_at, call->windowed, view->word};
        set_value(&link, call->until);
    } else {
        u64 offset = sp - call->stack;
        if (offset >= call->bytes || call->bytes - offset < view->word)
            return 0;
        typedef u64 __attribute__((aligned(1), may_alias)) unaligned;
        typedef u32 __attribute__((aligned(1), may_alias)) narrow;
        u8 *at = (u8 *)call->host + offset;
        if (view->word == 8)
            *(unaligned *)at = view->swapped ? __builtin_bswap64(call->until) : call->until;
        else
            *(narrow *)at = view->swapped ? __builtin_bswap32((u32)call->until) : (u32)call->until;
    }
    set_value(&view->sp, (sp - view->bias) & view->mask);
    return 1;
}

/* set_up(arguments): keeps the registers, and sets them as at the function's entry. None where the
 * stack is in no block that is known; nothing has changed then.
 *
 * arguments: a tuple of numbers, not more than there are registers for them. */
static PyObject *set_up_call(PyObject *self, PyObject *arguments)
{
    const struct guest_call *call = call_of(self);
    const struct view *view = (const struct view *)call->view;
    Py_ssize_t count = PyTuple_Size(arguments);
    if (PyErr_Occurred())
        return 0;
    int has_room = count <= (Py_ssize_t)view->arguments;
    if (has_room)
        ((int (*)(u64, u64))call->save)(call->engine, call->kept);
    if (!has_room || !make_frame(call)) {
        Py_IncRef(Py_None);
        return Py_None;
    }
    for (Py_ssize_t n = 0; n < count; n++) {
        u64 value = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(arguments, n));
        set_value(&view->argument[n], value);
    }
    return PyLong_FromUnsignedLongLong(1);
}

/* end(): the function's result; the registers are put back. */
static PyObject *end_call(PyObject *self, PyObject *unused)
{
    const struct guest_call *call = call_of(self);
    u64 value = value_at(&((const struct view *)call->view)->result);
    ((int (*)(u64, u64))call->restore)(call->engine, call->kept);
    return PyLong_FromUnsignedLongLong(value);
}

static PyMethodDef setting_up = {"set_up", set_up_call, METH_O, 0};
static PyMethodDef ending = {"end", end_call, METH_NOARGS, 0};

/* The functions, as Python calls them. self: address of struct guest_call. */
EXPORT PyObject *call_setter_up(PyObject *self) { return PyCFunction_NewEx(&setting_up, self, 0); }
EXPORT PyObject *call_ender(PyObject *self) { return PyCFunction_NewEx(&ending, self, 0); }

/* --- starting the engine */

/* The engine's handle, and uc_emu_start(). */
#define START_WORDS(X) X(engine) X(start)
EXPORT const char start_words[] = START_WORDS(NAME);
struct start { START_WORDS(WORD) };

/* start(begin, until): runs the guest without the interpreter's lock, and returns the engine's error
 * number. self: address of struct start. */
static PyObject *start_engine(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const struct start *words = (const struct start *)PyLong_AsUnsignedLongLongMask(self);
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "start(begin, until)");
        return 0;
    }
    u64 begin = PyLong_AsUnsignedLongLongMask(args[0]);
    u64 until = PyLong_AsUnsignedLongLongMask(args[1]);
    if (PyErr_Occurred())
        return 0;
    void *thread = PyEval_SaveThread();
    int error = ((int (*)(u64, u64, u64, u64, u64))words->start)(words->engine, begin, until, 0, 0);
    PyEval_RestoreThread(thread);
    return PyLong_FromUnsignedLongLong((u64)error);
}

static PyMethodDef starting = {"start", (PyCFunction)(void *)start_engine, METH_FASTCALL, 0};

EXPORT PyObject *engine_starter(PyObject *self) { return PyCFunction_NewEx(&starting, self, 0); }

/* --- reading a register */

/* The engine's handle, uc_reg_read(), and the engine's number of the register. */
#define READER_WORDS(X) X(engine) X(read) X(number)
EXPORT const char reader_words[] = READER_WORDS(NAME);
struct reader { READER_WORDS(WORD) };

/* read(): the register's value. self: address of struct reader. */
static PyObject *read_register(PyObject *self, PyObject *unused)
{
    const struct reader *words = (const struct reader *)PyLong_AsUnsignedLongLongMask(self);
    u64 value = 0;
    ((int (*)(u64, int, u64 *))words->read)(words->engine, (int)words->number, &value);
    return PyLong_FromUnsignedLongLong(value);
}

static PyMethodDef reading = {"read", read_register, METH_NOARGS, 0};

EXPORT PyObject *register_reader(PyObject *self) { return PyCFunction_NewEx(&reading, self, 0); }
