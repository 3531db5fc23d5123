/* Python's signal handlers before and after each run of a guest: whether they are the same as at the
 * last look, and their exchange. See kprobes/machine/unicorn/signals.py, which has the same in
 * Python.
 */
#include "python.h"
#include "words.h"

/* What the functions' `self` is: a tuple of signal.getsignal, signal.signal, the tuple of all
 * signals' numbers, and what is returned for True. */
enum { GETSIGNAL, SIGNAL, NUMBERS, TRUE };

/* Whether each signal has the handler in the tuple `seen`; -1: an exception is set.
 *
 * Nothing of Python's evaluates on the way, so that no handler is called meanwhile. */
static int same_handlers(PyObject *self, PyObject *seen)
{
    PyObject *look = PyTuple_GetItem(self, GETSIGNAL), *numbers = PyTuple_GetItem(self, NUMBERS);
    /* 62 calls: the function itself takes half the time that a call through its object does */
    int direct = PyCFunction_GetFlags(look) == METH_O;
    PyCFunction function = PyCFunction_GetFunction(look);
    PyObject *module = PyCFunction_GetSelf(look);
    Py_ssize_t count = PyTuple_Size(numbers);
    int same = PyTuple_Size(seen) == count;
    if (PyErr_Occurred()) /* `seen` is no tuple, or the first of `self` no built-in function */
        return -1;
    for (Py_ssize_t n = 0; n < count && same; n++) {
        PyObject *number = PyTuple_GetItem(numbers, n);
        PyObject *handler = direct ? function(module, number) : call_with(look, &number, 1);
        if (!handler)
            return -1;
        same = handler == PyTuple_GetItem(seen, n);
        Py_DecRef(handler);
    }
    return same;
}

/* Sets a signal's handler. 0: an exception is set, which a handler that was due has raised. */
static int set_handler(PyObject *self, PyObject *number, PyObject *handler)
{
    PyObject *args[] = {number, handler};
    PyObject *before = call_with(PyTuple_GetItem(self, SIGNAL), args, 2);
    if (!before)
        return 0;
    Py_DecRef(before);
    return 1;
}

/* hold(seen, numbers, held, handler): where each signal has the handler in the tuple `seen`, sets
 * `handler` for those in the tuple `numbers`, and returns True. Each number is appended to the list
 * `held` first. None where a signal has another handler; nothing has changed then. */
static PyObject *hold_signals(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4) {
        PyErr_SetString(PyExc_TypeError, "hold(seen, numbers, held, handler)");
        return 0;
    }
    int same = same_handlers(self, args[0]);
    if (same < 0)
        return 0;
    PyObject *result = same ? PyTuple_GetItem(self, TRUE) : Py_None;
    if (same) {
        Py_ssize_t many = PyTuple_Size(args[1]);
        if (many < 0)
            return 0;
        for (Py_ssize_t n = 0; n < many; n++) {
            PyObject *number = PyTuple_GetItem(args[1], n);
            if (PyList_Append(args[2], number) || !set_handler(self, number, args[3]))
                return 0;
        }
    }
    Py_IncRef(result);
    return result;
}

/* Puts back the handler of a signal whose handler is still `handler`. 0: an exception is set. */
static int put_back_handler(PyObject *self, PyObject *number, PyObject *handler, PyObject *usual)
{
    PyObject *now = call_with(PyTuple_GetItem(self, GETSIGNAL), &number, 1);
    if (!now)
        return 0;
    int ours = PyObject_RichCompareBool(now, handler, Py_EQ);
    Py_DecRef(now);
    if (ours <= 0) /* 0: the program has set another one meanwhile */
        return !ours;
    PyObject *before = PyObject_GetItem(usual, number);
    int done = before && set_handler(self, number, before);
    if (before)
        Py_DecRef(before);
    return done;
}

/* let_go(held, handler, usual): puts back the handlers of the signals in the list `held` that have
 * `handler` still, those in the dict `usual`. Each number is removed from `held` when that is done,
 * so where this raises, the rest are there. */
static PyObject *let_signals_go(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "let_go(held, handler, usual)");
        return 0;
    }
    for (Py_ssize_t left = PyList_Size(args[0]); left > 0; left = PyList_Size(args[0])) {
        PyObject *number = PyList_GetItem(args[0], left - 1);
        Py_IncRef(number); /* a handler that is called on the way may change the list */
        int done = put_back_handler(self, number, args[1], args[2]);
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

/* The functions, as Python calls them. */
EXPORT PyObject *signal_holder(PyObject *self) { return PyCFunction_NewEx(&holding, self, 0); }
EXPORT PyObject *signal_releaser(PyObject *self) { return PyCFunction_NewEx(&letting_go, self, 0); }
