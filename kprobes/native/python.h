/* The part of Python's stable ABI that hits.c uses, declared here: no header of Python's is needed
 * to build, and what is built does not depend on one. Everything is a function of the interpreter
 * that loads the library; no macro of its headers, and no member of its objects, is relied on.
 * CPython 3.10 and later, with a GIL.
 */
#ifndef KPROBES_PYTHON_H
#define KPROBES_PYTHON_H

typedef __INTPTR_TYPE__ Py_ssize_t;
typedef struct _object PyObject;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);

typedef struct { int slot; void *value; } PyType_Slot;
typedef struct {
    const char *name;
    int basicsize, itemsize;
    unsigned flags;
    PyType_Slot *slots;
} PyType_Spec;
typedef struct { const char *name; PyCFunction function; int flags; const char *doc; } PyMethodDef;
typedef struct {
    const char *name;
    int type;
    Py_ssize_t offset;
    int flags;
    const char *doc;
} PyMemberDef;
typedef struct {
    const char *name;
    PyObject *(*get)(PyObject *, void *);
    int (*set)(PyObject *, PyObject *, void *);
    const char *doc;
    void *closure;
} PyGetSetDef;

enum { Py_tp_doc = 56, Py_tp_methods = 64, Py_tp_members = 72, Py_tp_getset = 73 };
enum { METH_FASTCALL = 0x80, METH_O = 0x8, METH_NOARGS = 0x4 };
enum { T_OBJECT_EX = 16 }; /* Python visits and clears these for the garbage collector */
/* Py_TPFLAGS_BASETYPE; Py_TPFLAGS_HAVE_VERSION_TAG, with which 3.10 caches attributes as well */
#define TYPE_FLAGS (1u << 10 | 1u << 18)

/* Windows: data of another library is reached through a word that the loader fills. */
#ifdef _WIN32
#define DATA_OF_PYTHON __declspec(dllimport) extern
#else
#define DATA_OF_PYTHON extern
#endif
DATA_OF_PYTHON PyObject _Py_NoneStruct;
DATA_OF_PYTHON PyObject *PyExc_TypeError, *PyExc_IndexError;
#define Py_None (&_Py_NoneStruct)

int PyGILState_Ensure(void);
void PyGILState_Release(int);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
/* Python 3.10 has it in its headers only: there it is 0. Windows has no functions that may be
 * missing, and its python3.dll has this one since 3.12. */
#ifdef _WIN32
#define PyObject_Vectorcall ((PyObject * (*)(PyObject *, PyObject *const *, __SIZE_TYPE__, PyObject *))0)
#else
PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, __SIZE_TYPE__, PyObject *)
    __attribute__((weak));
#endif
PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
PyObject *PyObject_CallMethodObjArgs(PyObject *, PyObject *, ...);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyObject_GetAttr(PyObject *, PyObject *);
int PyObject_SetAttr(PyObject *, PyObject *, PyObject *);
PyObject *PyObject_GetItem(PyObject *, PyObject *);
PyObject *PyDict_New(void);
int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
int PyObject_IsTrue(PyObject *);
enum { Py_EQ = 2 };
int PyObject_RichCompareBool(PyObject *, PyObject *, int);
int PySequence_Contains(PyObject *, PyObject *);
PyObject *PyType_FromSpecWithBases(PyType_Spec *, PyObject *);
int PyType_IsSubtype(PyObject *, PyObject *);
PyObject *PyObject_Type(PyObject *);
PyObject *PyLong_FromLong(long);
PyObject *PyLong_FromUnsignedLongLong(unsigned long long);
unsigned long long PyLong_AsUnsignedLongLongMask(PyObject *);
Py_ssize_t PyLong_AsSsize_t(PyObject *);
Py_ssize_t PyList_Size(PyObject *);
PyObject *PyList_GetItem(PyObject *, Py_ssize_t);
int PyList_Append(PyObject *, PyObject *);
int PyList_SetSlice(PyObject *, Py_ssize_t, Py_ssize_t, PyObject *);
PyObject *PyTuple_New(Py_ssize_t);
Py_ssize_t PyTuple_Size(PyObject *);
PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
int PyCFunction_GetFlags(PyObject *);
PyCFunction PyCFunction_GetFunction(PyObject *);
PyObject *PyCFunction_GetSelf(PyObject *);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
PyObject *PyErr_Occurred(void);
void PyErr_Clear(void);
void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **);
int PyException_SetTraceback(PyObject *, PyObject *);
void PyErr_SetString(PyObject *, const char *);
void PyErr_WriteUnraisable(PyObject *);

/* Calls a function with one to three arguments. 0: it has raised. */
static inline PyObject *call_with(PyObject *function, PyObject *const *args, __SIZE_TYPE__ count)
{
    if (PyObject_Vectorcall)
        return PyObject_Vectorcall(function, args, count, 0);
    return PyObject_CallFunctionObjArgs(function, args[0], count > 1 ? args[1] : 0,
                                        count > 2 ? args[2] : 0, (PyObject *)0);
}

#endif
