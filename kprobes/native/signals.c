/* Whether Python's signal handlers are the same as at the last look: asked before each run of a
 * guest. See kprobes/machine/unicorn/signals.py.
 */
#include "python.h"
#include "words.h"

/* same(seen): True if each signal has the handler in the tuple `seen`; None otherwise.
 *
 *   self   (getsignal, tuple of the signals' numbers, what is returned for True)
 *
 * Nothing of Python's evaluates on the way, so that no handler is called meanwhile.
 */
static PyObject *same_handlers(PyObject *self, PyObject *seen)
{
    PyObject *look = PyTuple_GetItem(self, 0), *numbers = PyTuple_GetItem(self, 1);
    /* 62 calls: the function itself takes half the time that a call through its object does */
    int direct = PyCFunction_GetFlags(look) == METH_O;
    PyCFunction function = PyCFunction_GetFunction(look);
    PyObject *module = PyCFunction_GetSelf(look);
    Py_ssize_t count = PyTuple_Size(numbers);
    PyObject *result = PyTuple_Size(seen) == count ? PyTuple_GetItem(self, 2) : Py_None;
    if (PyErr_Occurred()) /* `seen` is no tuple, or the first of `self` no built-in function */
        return 0;
    for (Py_ssize_t n = 0; n < count && result != Py_None; n++) {
        PyObject *number = PyTuple_GetItem(numbers, n);
        PyObject *handler = direct ? function(module, number) : call_with(look, &number, 1);
        if (!handler)
            return 0;
        if (handler != PyTuple_GetItem(seen, n))
            result = Py_None;
        Py_DecRef(handler);
    }
    Py_IncRef(result);
    return result;
}

static PyMethodDef looking = {"same", same_handlers, METH_O, 0};

/* The function, as Python calls it. */
EXPORT PyObject *signal_looker(PyObject *self) { return PyCFunction_NewEx(&looking, self, 0); }
