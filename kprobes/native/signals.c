/* Python's signal handlers before and after each run of a guest: whether they are the same as at the
 * last look, and their exchange. See kprobes/machine/unicorn/signals.py, which has the same in
 * Python.
 */
#include "python.h"
#include "words.h"

/* What one machine's runs have in common. All but `count` are addresses; kprobes/machine/unicorn/
 * signals.py keeps the objects.
 *
 *   getsignal, setsignal, setwakeup   signal.getsignal, signal.signal, and what sets the
 *              wake-up descriptor and returns the one of before
 *   count      of all signals
 *   numbers    their numbers: an array of PyObject *
 *   seen       the handlers that they had at the last look: an array of PyObject *
 *   nowhere    the number -1
 *   handlers   address of the interpreter's own pointer to the handler that signal 0 would have; 0:
 *              it is not known, and the functions are called
 *   row        bytes from one signal's pointer to the next one's
 *   wakeup     address of the interpreter's wake-up file descriptor, an int
 */
#define HOLD_WORDS(X) \
    X(getsignal) X(setsignal) X(setwakeup) X(count) X(numbers) X(seen) \
    X(nowhere) X(handlers) X(row) X(wakeup)
EXPORT const char hold_words[] = HOLD_WORDS(NAME);
struct hold { HOLD_WORDS(WORD) };

static const struct hold *hold_of(PyObject *self)
{
    return (const struct hold *)PyLong_AsUnsignedLongLongMask(self);
}

/* The interpreter's own pointer to the handler of a signal. */
static PyObject **place_of(const struct hold *hold, PyObject *number)
{
    return (PyObject **)(hold->handlers + hold->row * PyLong_AsUnsignedLongLongMask(number));
}

/* Whether each signal has the handler that was seen; -1: an exception is set.
 *
 * Nothing of Python's evaluates on the way, so that no handler is called meanwhile. */
static int same_handlers(const struct hold *hold)
{
    PyObject *look = (PyObject *)hold->getsignal;
    PyObject *const *numbers = (PyObject *const *)hold->numbers;
    PyObject *const *seen = (PyObject *const *)hold->seen;
    if (hold->handlers) {
        for (u64 n = 0; n < hold->count; n++)
            if (*place_of(hold, numbers[n]) != seen[n])
                return 0;
        return 1;
    }
    /* 62 calls: the function itself takes half the time that a call through its object does */
    int direct = PyCFunction_GetFlags(look) == METH_O;
    PyCFunction function = PyCFunction_GetFunction(look);
    PyObject *module = PyCFunction_GetSelf(look);
    if (PyErr_Occurred()) /* it is no built-in function */
        return -1;
    int same = 1;
    for (u64 n = 0; n < hold->count && same; n++) {
        PyObject *handler =
            direct ? function(module, numbers[n]) : call_with(look, &numbers[n], 1);
        if (!handler)
            return -1;
        same = handler == seen[n];
        Py_DecRef(handler);
    }
    return same;
}

/* Sets a signal's handler. 0: an exception is set, which a handler that was due has raised. */
static int set_handler(const struct hold *hold, PyObject *number, PyObject *handler)
{
    PyObject *args[] = {number, handler};
    PyObject *before;
    if (hold->handlers) {
        Py_IncRef(handler);
        before = __atomic_exchange_n(place_of(hold, number), handler, __ATOMIC_RELAXED);
    } else {
        before = call_with((PyObject *)hold->setsignal, args, 2);
    }
    if (!before)
        return 0;
    Py_DecRef(before);
    return 1;
}

/* Sets the wake-up descriptor; the one of before. 0: an exception is set. */
static PyObject *set_wakeup(const struct hold *hold, PyObject *fd)
{
    if (!hold->wakeup)
        return call_with((PyObject *)hold->setwakeup, &fd, 1);
    int number = (int)PyLong_AsSsize_t(fd);
    if (PyErr_Occurred())
        return 0;
    return PyLong_FromLong(__atomic_exchange_n((int *)hold->wakeup, number, __ATOMIC_RELAXED));
}

/* hold(numbers, held, handler, fd): where each signal has the handler that was seen, sets `handler`
 * for those in the tuple `numbers`, and, if there are any, the wake-up descriptor `fd`. Each number
 * is appended to the list `held` first. The descriptor of before is returned: -1 where there was
 * none, and where there are no numbers. None where a signal has another handler; nothing has changed
 * then. */
static PyObject *hold_signals(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "hold(numbers, held, handler, fd)");
        return 0;
    }
    const struct hold *hold = hold_of(self);
    Py_ssize_t many = PyTuple_Size(args[0]);
    if (many < 0)
        return 0;
    int same = same_handlers(hold);
    if (same < 0)
        return 0;
    for (Py_ssize_t n = 0; same && n < many; n++) {
        PyObject *number = PyTuple_GetItem(args[0], n);
        if (PyList_Append(args[1], number) || !set_handler(hold, number, args[2]))
            return 0;
    }
    if (same && many)
        return set_wakeup(hold, args[3]);
    PyObject *result = same ? (PyObject *)hold->nowhere : Py_None;
    Py_IncRef(result);
    return result;
}

/* Puts back the handler of a signal whose handler is still `handler`. 0: an exception is set. */
static int put_back_handler(const struct hold *hold, PyObject *number, PyObject *handler,
                            PyObject *usual)
{
    PyObject *now;
    if (hold->handlers) {
        now = *place_of(hold, number);
        Py_IncRef(now);
    } else {
        now = call_with((PyObject *)hold->getsignal, &number, 1);
    }
    if (!now)
        return 0;
    int ours = PyObject_RichCompareBool(now, handler, Py_EQ);
    Py_DecRef(now);
    if (ours <= 0) /* 0: the program has set another one meanwhile */
        return !ours;
    PyObject *before = PyObject_GetItem(usual, number);
    int done = before && set_handler(hold, number, before);
    if (before)
        Py_DecRef(before);
    return done;
}

/* let_go(held, handler, usual, fd): sets the wake-up descriptor, unless `fd` is None, and puts back
 * the handlers of the signals in the list `held` that have `handler` still, those in the dict
 * `usual`. Each number is removed from `held` when that is done, so where this raises, the rest are
 * there. */
static PyObject *let_signals_go(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "let_go(held, handler, usual, fd)");
        return 0;
    }
    const struct hold *hold = hold_of(self);
    if (args[3] != Py_None) {
        PyObject *before = set_wakeup(hold, args[3]);
        if (!before)
            return 0;
        Py_DecRef(before);
    }
    for (Py_ssize_t left = PyList_Size(args[0]); left > 0; left = PyList_Size(args[0])) {
        PyObject *number = PyList_GetItem(args[0], left - 1);
        Py_IncRef(number); /* a handler that is called on the way may change the list */
        int done = put_back_handler(hold, number, args[1], args[2]);
        Py_DecRef(number);
        if (!done || PyList_SetSlice(args[0], left - 1, left, 0))
            return 0;
    }
    if (PyErr_Occurred())
        return 0;
    Py_IncRef(Py_None);
    return Py_None;
}

static PyMethodDef holding = {"hold", (PyCFunction)(void *)hold_signals, METH_FASTCALL, 0};
static PyMethodDef letting_go = {"let_go", (PyCFunction)(void *)let_signals_go, METH_FASTCALL, 0};

/* The functions, as Python calls them. self: address of struct hold. */
EXPORT PyObject *signal_holder(PyObject *self) { return PyCFunction_NewEx(&holding, self, 0); }
EXPORT PyObject *signal_releaser(PyObject *self) { return PyCFunction_NewEx(&letting_go, self, 0); }
