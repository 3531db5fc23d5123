/* The usual hit: one handler in Python, called from here; and the objects that handlers see.
 *
 * "Usual" is: one CPU, no displaced instruction under way, the run neither stopped nor nested (the
 * gate is open), one handler, which neither raises nor sends the guest elsewhere, and changes
 * nothing of the probes at this place. Whatever else happens goes to Python: before the handler ran
 * to the site's service, afterwards to `finish`, which does what the service would have done from
 * there on. kprobes/core/hit says what that is.
 */
#include "python.h"
#include "guest.h"
#include "way.h"

/* --- objects
 *
 * A type made here is a subclass of a class written in Python, which it makes quicker: what is
 * looked at on every hit is kept in words of C, and shadows the slots of the same name. The words
 * begin at a fixed distance from the object's start, behind those of any such class (make_type
 * checks).
 */
EXPORT const char place_words[] = PLACE_WORDS(NAME);
EXPORT const char view_words[] = VIEW_WORDS(NAME);
#define CALL_AT 192
#define BLOCK_AT 128

struct instance { u64 frame, link, ret_addr; PyObject *task, *args, *data; };
struct control_block { PyObject *state, *point, *resume, *probes, *child; };

static struct instance *instance_of(PyObject *object)
{
    return (struct instance *)((char *)object + CALL_AT);
}

static struct control_block *block_of(PyObject *object)
{
    return (struct control_block *)((char *)object + BLOCK_AT);
}

static void put(PyObject **place, PyObject *object)
{
    PyObject *old = *place;
    if (object)
        Py_IncRef(object);
    *place = object;
    if (old)
        Py_DecRef(old);
}

/* --- the registers */

/* Members of a class in Python that its quick subclass falls back on. */
enum { ARG, STACK, GET_PC, SET_PC, GET_SP, SET_SP, GET_RESULT, SET_RESULT, MEMBERS };
static const char *const members[MEMBERS][2] = {
    {"arg", 0}, {"stack", 0}, {"pc", "fget"}, {"pc", "fset"}, {"sp", "fget"}, {"sp", "fset"},
    {"return_value", "fget"}, {"return_value", "fset"}};

/* The classes made here, `made` of them; they live as long as the process. */
static struct { PyObject *type, *plain[MEMBERS]; } classes[16];
static int made;

/* Looks the members up. They are kept: a name that is looked up each time would fill Python's cache
 * of attributes. */
static int learn(PyObject *base, PyObject **plain)
{
    for (int n = 0; n < MEMBERS; n++) {
        plain[n] = PyObject_GetAttrString(base, members[n][0]);
        if (plain[n] && members[n][1]) {
            PyObject *property = plain[n];
            plain[n] = PyObject_GetAttrString(property, members[n][1]);
            Py_DecRef(property);
        }
        if (!plain[n])
            return 0;
    }
    return 1;
}

/* A member of the class in Python that this object's class makes quicker. */
static PyObject *plain_member(PyObject *object, int member)
{
    PyObject *type = PyObject_Type(object);
    int n = 0;
    while (n < made - 1 && !(classes[n].plain[0] && PyType_IsSubtype(type, classes[n].type)))
        n++;
    Py_DecRef(type);
    return classes[n].plain[member];
}

static PyObject *plain_get(PyObject *object, int member)
{
    return PyObject_CallFunctionObjArgs(plain_member(object, member), object, (PyObject *)0);
}

static int plain_set(PyObject *object, int member, PyObject *to)
{
    if (!to) {
        PyErr_SetString(PyExc_TypeError, "a register cannot be deleted");
        return -1;
    }
    PyObject *plain = plain_member(object, member);
    PyObject *done = PyObject_CallFunctionObjArgs(plain, object, to, (PyObject *)0);
    if (done)
        Py_DecRef(done);
    return done ? 0 : -1;
}

static PyObject *plain_call(PyObject *object, int member, PyObject *number)
{
    PyObject *plain = plain_member(object, member);
    return PyObject_CallFunctionObjArgs(plain, object, number, (PyObject *)0);
}

static PyObject *number_or_none(u64 value, u64 there)
{
    if (there)
        return PyLong_FromUnsignedLongLong(value);
    Py_IncRef(Py_None);
    return Py_None;
}

static int set_number(PyObject *to, u64 *value, u64 *there)
{
    if (!to || to == Py_None) {
        *there = 0;
        return 0;
    }
    u64 number = PyLong_AsUnsignedLongLongMask(to);
    if (number == ~0ull && PyErr_Occurred())
        return -1;
    *value = number;
    *there = 1;
    return 0;
}

static PyObject *get_reported(PyObject *self, void *unused)
{
    return number_or_none(regs_of(self)->reported, regs_of(self)->is_reported);
}
static int set_reported(PyObject *self, PyObject *to, void *unused)
{
    return set_number(to, &regs_of(self)->reported, &regs_of(self)->is_reported);
}
static PyObject *get_target(PyObject *self, void *unused)
{
    return number_or_none(regs_of(self)->target, regs_of(self)->is_sent);
}
static int set_target(PyObject *self, PyObject *to, void *unused)
{
    return set_number(to, &regs_of(self)->target, &regs_of(self)->is_sent);
}
static PyObject *get_pc(PyObject *self, void *unused)
{
    struct regs *regs = regs_of(self);
    if (regs->is_reported)
        return PyLong_FromUnsignedLongLong(regs->reported);
    return plain_get(self, GET_PC);
}
static int set_pc(PyObject *self, PyObject *to, void *unused)
{
    return plain_set(self, SET_PC, to);
}

static PyObject *get_sp(PyObject *self, void *unused)
{
    struct view *view = regs_of(self)->view;
    if (view && view->sp.size)
        return PyLong_FromUnsignedLongLong(stack_pointer(view));
    return plain_get(self, GET_SP);
}
static int set_sp(PyObject *self, PyObject *to, void *unused)
{
    return plain_set(self, SET_SP, to);
}

static PyObject *get_result(PyObject *self, void *unused)
{
    struct view *view = regs_of(self)->view;
    return view && view->result.size ? PyLong_FromUnsignedLongLong(value_at(&view->result))
                                     : plain_get(self, GET_RESULT);
}
static int set_result(PyObject *self, PyObject *to, void *unused)
{
    return plain_set(self, SET_RESULT, to);
}

static PyObject *arg(PyObject *self, PyObject *number)
{
    struct view *view = regs_of(self)->view;
    u64 value;
    if (view) {
        Py_ssize_t n = PyLong_AsSsize_t(number);
        if (n == -1 && PyErr_Occurred())
            PyErr_Clear();
        else if (n >= 0 && n < (Py_ssize_t)view->arguments) {
            if (!view->on_stack)
                return PyLong_FromUnsignedLongLong(value_at(&view->argument[n]));
            u64 place = stack_pointer(view) + view->first + n * view->word;
            if (load(view, place & view->mask, &value))
                return PyLong_FromUnsignedLongLong(value);
        }
    }
    return plain_call(self, ARG, number);
}

static PyObject *stack(PyObject *self, PyObject *number)
{
    struct view *view = regs_of(self)->view;
    u64 value;
    if (view && view->sp.size) {
        Py_ssize_t n = PyLong_AsSsize_t(number);
        if (n == -1 && PyErr_Occurred())
            PyErr_Clear();
        else if (load(view, (stack_pointer(view) + n * (long long)view->step) & view->mask, &value))
            return PyLong_FromUnsignedLongLong(value);
    }
    return plain_call(self, STACK, number);
}

static PyGetSetDef regs_properties[] = {
    {"reported", get_reported, set_reported, 0, 0}, {"target", get_target, set_target, 0, 0},
    {"pc", get_pc, set_pc, "Address of the instruction reported.", 0},
    {"sp", get_sp, set_sp, "The stack pointer.", 0},
    {"return_value", get_result, set_result, "The integer return value.", 0}, {0}};
static PyMethodDef regs_methods[] = {
    {"arg", arg, METH_O, "arg($self, n, /)\n--\n\nThe n-th (from 0) integer argument."},
    {"stack", stack, METH_O,
     "stack($self, n, /)\n--\n\nThe n-th (from 0) word of the stack."}, {0}};

/* Have a registers object read by these words from now on. The caller keeps them as long as it. */
EXPORT void see(PyObject *regs, struct view *view) { regs_of(regs)->view = view; }

/* --- calls of probed functions, and the control block */

#define NUMBER(name)                                                                               \
    static PyObject *get_##name(PyObject *self, void *unused)                                      \
    {                                                                                              \
        return PyLong_FromUnsignedLongLong(instance_of(self)->name);                               \
    }                                                                                              \
    static int set_##name(PyObject *self, PyObject *to, void *unused)                              \
    {                                                                                              \
        u64 there;                                                                                 \
        return set_number(to, &instance_of(self)->name, &there);                                   \
    }
NUMBER(frame)
NUMBER(link)
NUMBER(ret_addr)

static PyGetSetDef instance_properties[] = {
    {"frame", get_frame, set_frame, 0, 0}, {"link", get_link, set_link, 0, 0},
    {"ret_addr", get_ret_addr, set_ret_addr, 0, 0}, {0}};
#define MEMBER(structure, at, name) \
    {#name, T_OBJECT_EX, at + __builtin_offsetof(struct structure, name), 0, 0}
static PyMemberDef instance_members[] = {
    MEMBER(instance, CALL_AT, task), MEMBER(instance, CALL_AT, args),
    {"_data", T_OBJECT_EX, CALL_AT + __builtin_offsetof(struct instance, data), 0, 0}, {0}};
static PyMemberDef block_members[] = {
    MEMBER(control_block, BLOCK_AT, state), MEMBER(control_block, BLOCK_AT, point),
    MEMBER(control_block, BLOCK_AT, resume), MEMBER(control_block, BLOCK_AT, probes),
    MEMBER(control_block, BLOCK_AT, child), {0}};

/* A subclass of a class in Python. kind: "regs", "instance" or "block". TypeError where its objects
 * are too large. */
EXPORT PyObject *make_type(PyObject *bases, PyObject *base, const char *name, const char *kind)
{
    PyObject *size = PyObject_GetAttrString(base, "__basicsize__");
    if (!size)
        return 0;
    Py_ssize_t bytes = PyLong_AsSsize_t(size);
    Py_DecRef(size);
    PyType_Slot slots[3] = {{0, 0}, {0, 0}, {0, 0}};
    int at, words;
    if (kind[0] == 'r') {
        at = REGS_AT;
        words = sizeof(struct regs);
        slots[0] = (PyType_Slot){Py_tp_getset, regs_properties};
        slots[1] = (PyType_Slot){Py_tp_methods, regs_methods};
    } else if (kind[0] == 'i') {
        at = CALL_AT;
        words = sizeof(struct instance);
        slots[0] = (PyType_Slot){Py_tp_getset, instance_properties};
        slots[1] = (PyType_Slot){Py_tp_members, instance_members};
    } else {
        at = BLOCK_AT;
        words = sizeof(struct control_block);
        slots[0] = (PyType_Slot){Py_tp_members, block_members};
    }
    if (bytes > at || made == sizeof classes / sizeof *classes) {
        PyErr_SetString(PyExc_TypeError, "objects of this class are too large to be made quicker");
        return 0;
    }
    PyType_Spec spec = {name, at + words, 0, TYPE_FLAGS, slots};
    PyObject *type = PyType_FromSpecWithBases(&spec, bases);
    if (type) {
        if (kind[0] == 'r' && !learn(base, classes[made].plain)) {
            Py_DecRef(type);
            return 0;
        }
        Py_IncRef(type);
        classes[made++].type = type;
    }
    return type;
}

/* --- hits */

/* What the hits of one CPU have in common. Objects here and in struct usual are Python's, which
 * keeps them; who calls into Python holds what it needs itself.
 *
 *   regs, block      the CPU's registers and control block
 *   idle, active     states of the control block: no probe is running; handlers run. Python holds
 *                    one reference to `active` for call_handler(), besides its own
 *   zero             the number 0: the only task
 *   mode_bits        bits of an address that are no part of it
 *   skip             called with a return address as the guest left it: where the caller wants the
 *                    function to return to; 0: there is no difference
 */
#define HITS_WORDS(X) X(regs) X(block) X(idle) X(active) X(zero) X(mode_bits) X(skip)
EXPORT const char hits_words[] = HITS_WORDS(NAME);
struct hits { HITS_WORDS(WORD) };

/* One place's usual hit.
 *
 *   hits      struct hits
 *   owner     lives as long as these words, and keeps what they name: who holds it needs no
 *             reference to the handler, the probe, the pool or the list
 *   handler   what is called; 0: nothing is, at a return
 *   probe     its first argument; at a return, whose turn it is
 *   address   what regs.pc shows
 *   finish    called with what is left to Python, see the functions below
 *   pool      list of instances that no call has
 *   held      list of those whose calls are followed from here and were asked about at entry
 *   asked     1: there may be such; at a return
 */
#define USUAL_WORDS(X) \
    X(hits) X(owner) X(handler) X(probe) X(address) X(finish) X(pool) X(held) X(asked)
EXPORT const char usual_words[] = USUAL_WORDS(NAME);
struct usual { USUAL_WORDS(WORD) };

#define DISTURBED 1 /* byte of the gate: see kprobes.machine.unicorn.host.hostcode */

static int disturbed(struct calls *calls) { return ((u8 *)&calls->gate)[DISTURBED]; }

/* Take the exception that was raised, with its traceback; a new reference. */
static PyObject *raised(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    Py_DecRef(type);
    if (traceback)
        Py_DecRef(traceback);
    return value;
}

/* Have Python do the rest of a hit: call finish(one, result, error), which never raises. result,
 * error: 0 stands for None; their references are taken. */
static void finish(struct usual *usual, PyObject *one, PyObject *result, PyObject *error)
{
    PyObject *function = OBJECT(usual->finish);
    Py_IncRef(function);
    PyObject *first = one ? one : Py_None;
    PyObject *returned = result ? result : Py_None;
    PyObject *raised = error ? error : Py_None;
    PyObject *answer =
        PyObject_CallFunctionObjArgs(function, first, returned, raised, (PyObject *)0);
    if (!answer)
        PyErr_WriteUnraisable(function);
    else
        Py_DecRef(answer);
    if (result)
        Py_DecRef(result);
    if (error)
        Py_DecRef(error);
    Py_DecRef(function);
}

/* Call handler(first, regs), while the control block says that handlers run. 0: it has raised. The
 * caller holds `owner`.
 *
 * Every hit comes here, and a reference costs 2 ns to take and to give back. So the two states
 * change places: the block's reference to the state before is kept here meanwhile, and the block has
 * the one to `active` that is held for this. Whoever has put another state into the block has
 * given that one back.
 */
static PyObject *call_handler(struct usual *usual, PyObject *first)
{
    struct hits *hits = (struct hits *)usual->hits;
    PyObject *block = OBJECT(hits->block); /* a handler may close everything, and begin anew */
    PyObject *active = OBJECT(hits->active), *args[2] = {first, OBJECT(hits->regs)};
    PyObject **state = &block_of(block)->state, *before = *state;
    Py_IncRef(block);
    *state = active;
    PyObject *result = call_with(OBJECT(usual->handler), args, 2);
    if (*state == active) {
        *state = before;
    } else {
        Py_IncRef(active);
        put(state, before);
        Py_DecRef(before);
    }
    Py_DecRef(block);
    return result;
}

static struct regs *report(struct usual *usual)
{
    struct regs *regs = regs_of(OBJECT(((struct hits *)usual->hits)->regs));
    regs->reported = usual->address;
    regs->is_reported = 1;
    return regs;
}

/* True where a pre- or entry handler asks for nothing. False, with an exception set, where its
 * result has no truth. */
static int asks_nothing(PyObject *result)
{
    return result && (result == Py_None || PyObject_IsTrue(result) == 0);
}

/* Call finish() with a handler's result, whose reference is taken, and what was raised, if
 * anything. */
static void finish_with(struct usual *usual, PyObject *one, PyObject *result)
{
    PyObject *error = PyErr_Occurred() ? raised() : 0;
    if (result && error) {
        Py_DecRef(result);
        result = 0;
    }
    finish(usual, one, result, error);
}

/* A site's function: call one pre-handler. The rest of an unusual hit is finish(None, result,
 * error).
 */
EXPORT void hit(struct site *site)
{
    struct calls *calls = calls_of(site);
    struct usual *usual = (struct usual *)site->usual;
    if (REASONS_OF_HITS(calls))
        return ask_python(site);
    int state = PyGILState_Ensure();
    PyObject *owner = OBJECT(usual->owner);
    Py_IncRef(owner);
    struct regs *regs = report(usual);
    site->hits++;
    PyObject *result = call_handler(usual, OBJECT(usual->probe));
    if (asks_nothing(result) && !disturbed(calls) && site->function == (u64)hit
        && site->usual == (u64)usual) {
        Py_DecRef(result);
        regs->is_sent = 0; /* only a true result moves the guest */
        regs->is_reported = 0;
    } else {
        finish_with(usual, 0, result);
    }
    Py_DecRef(owner);
    PyGILState_Release(state);
}

/* Take the last item of a list; a new reference. 0: the list is empty. */
static PyObject *pop(PyObject *list)
{
    Py_ssize_t size = PyList_Size(list);
    if (size <= 0)
        return 0;
    PyObject *last = PyList_GetItem(list, size - 1);
    Py_IncRef(last);
    PyList_SetSlice(list, size - 1, size, 0);
    return last;
}

/* Put an instance back into its pool: no call has it any more. */
static void recycle(PyObject *pool, PyObject *instance)
{
    put(&instance_of(instance)->data, Py_None);
    put(&instance_of(instance)->args, Py_None);
    if (PyList_Append(pool, instance))
        PyErr_WriteUnraisable(pool);
}

static void begin(struct usual *usual, PyObject *instance, u64 frame, u64 target)
{
    struct instance *words = instance_of(instance);
    put(&words->task, OBJECT(((struct hits *)usual->hits)->zero));
    words->frame = frame;
    words->link = words->ret_addr = target;
}

/* Where the caller wants the function to return to. */
static u64 skipped(struct usual *usual, u64 target)
{
    PyObject *skip = OBJECT(((struct hits *)usual->hits)->skip);
    if (!skip)
        return target;
    PyObject *number = PyLong_FromUnsignedLongLong(target);
    PyObject *to = number ? PyObject_CallFunctionObjArgs(skip, number, (PyObject *)0) : 0;
    if (number)
        Py_DecRef(number);
    if (to) {
        target = PyLong_AsUnsignedLongLongMask(to);
        Py_DecRef(to);
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(skip);
    return target;
}

/* A site's `entered`: ask the entry handler whether the call is followed. 1: it is, and returns to
 * the trampoline. 0: finish(instance, result, error) was called, and the core has decided. */
EXPORT int entered(struct site *site)
{
    struct calls *calls = calls_of(site);
    struct usual *usual = (struct usual *)site->usual;
    int state = PyGILState_Ensure(), follows = 0;
    u64 frame = calls->frame, target = calls->target;
    PyObject *owner = OBJECT(usual->owner);
    PyObject *pool = OBJECT(usual->pool);
    PyObject *held = OBJECT(usual->held);
    Py_IncRef(owner);
    PyObject *instance = pop(pool);
    if (instance) {
        begin(usual, instance, frame, skipped(usual, target));
        struct regs *regs = report(usual);
        PyObject *result = call_handler(usual, instance);
        int follow = asks_nothing(result);
        calls->frame = frame; /* a run of the handler's may have written them */
        calls->target = target;
        if (PyErr_Occurred() || disturbed(calls) || site->entered != (u64)entered
            || site->usual != (u64)usual) {
            finish_with(usual, instance, result);
        } else {
            Py_DecRef(result);
            regs->is_sent = 0; /* only an exception's fault handler moves the guest */
            if (!follow) {
                recycle(pool, instance);
                regs->is_reported = 0;
            } else if (((struct way *)calls->way)->show(calls)) {
                PyList_Append(held, instance);
                regs->is_reported = 0;
                follows = 1;
            } else { /* the handler has changed where the function returns to */
                finish(usual, instance, 0, 0);
            }
        }
        Py_DecRef(instance);
    } else {
        ask_python(site);
    }
    Py_DecRef(owner);
    PyGILState_Release(state);
    return follows;
}

/* A site's `returned`, without a handler: give back the instance that the entry took, and let the
 * guest return where its caller wants. */
static void unseen(struct calls *calls, struct usual *usual)
{
    struct hits *hits = (struct hits *)usual->hits;
    /* whether the trampoline's own code leads where the call returns to */
    int by_itself = ((struct way *)calls->way)->unmoved(calls);
    if (by_itself && !hits->skip && !usual->asked)
        return;
    int state = PyGILState_Ensure();
    u64 target = calls->target, to = skipped(usual, target);
    PyObject *instance = pop(OBJECT(usual->held));
    if (instance) {
        recycle(OBJECT(usual->pool), instance);
        Py_DecRef(instance);
    }
    if (to != target || !by_itself) {
        struct regs *regs = regs_of(OBJECT(hits->regs));
        regs->target = to;
        regs->reported = to & ~hits->mode_bits;
        regs->is_sent = regs->is_reported = 1;
        finish(usual, 0, 0, 0);
    }
    PyGILState_Release(state);
}

/* A site's `returned`, with one handler. The return address is in place again, and the guest
 * returns by itself unless the handler moves it; then finish(instance, None, error) is called. */
EXPORT void returned(struct site *site)
{
    struct calls *calls = calls_of(site);
    struct usual *usual = (struct usual *)site->at_return;
    struct hits *hits = (struct hits *)usual->hits;
    site->returns++;
    if (!usual->handler)
        return unseen(calls, usual);
    int state = PyGILState_Ensure();
    u64 frame = calls->frame, target = calls->target, to = skipped(usual, target);
    PyObject *owner = OBJECT(usual->owner), *pool = OBJECT(usual->pool), *error = 0;
    Py_IncRef(owner);
    PyObject *instance = pop(OBJECT(usual->held));
    if (!instance && (instance = pop(pool)))
        begin(usual, instance, frame, to);
    if (!instance) {
        PyErr_SetString(PyExc_IndexError, "a call returns that has no instance");
        finish(usual, 0, 0, raised());
    } else {
        struct regs *regs = regs_of(OBJECT(hits->regs));
        regs->target = to;
        regs->reported = to & ~hits->mode_bits;
        regs->is_sent = regs->is_reported = 1;
        put(&block_of(OBJECT(hits->block))->child, OBJECT(usual->probe));
        PyObject *result = call_handler(usual, instance);
        if (result)
            Py_DecRef(result);
        else
            error = raised();
        recycle(pool, instance);
        calls->frame = frame;
        calls->target = target;
        if (!error && !disturbed(calls) && regs->is_sent && regs->target == to && to == target
            && ((struct way *)calls->way)->unmoved(calls)) {
            regs->is_sent = 0;
            regs->is_reported = 0;
        } else {
            finish(usual, instance, 0, error);
        }
        Py_DecRef(instance);
    }
    Py_DecRef(owner);
    PyGILState_Release(state);
}

/* --- breakpoints
 *
 * Where the engine reports a breakpoint as an interrupt, its hook is `interrupt`, and what it finds
 * in a table is served here: a lone probe whose instruction runs in its slot, or whose handler
 * sends the guest elsewhere. The slot goes back by itself (`boosted`), or ends in a second
 * breakpoint, which is in the table, too. What is not there, or not as usual, is Python's hook's,
 * as are the interrupts of the guest's own.
 */

/* One probe's breakpoint, or the end of its slot.
 *
 *   usual       struct usual: the pre-handler; 0: there is none. Its owner keeps these words, too
 *   post        struct usual: the post-handler, or 0; its address is where the next instruction is
 *   hits        that were served here
 *   boosted     1: the slot goes back by itself
 *   slot        what pc becomes at a hit; 0: there is none, and what the handler does not send
 *               elsewhere is Python's
 *   next        what pc becomes at the slot's end
 *   mode        bits of these that say in which mode the guest goes on
 *   point, probes, resume   objects of the control block while the slot runs
 */
#define TRAP_WORDS(X) \
    X(usual) X(post) X(hits) X(boosted) X(slot) X(next) X(mode) X(point) X(probes) X(resume)
EXPORT const char trap_words[] = TRAP_WORDS(NAME);
struct trap { TRAP_WORDS(WORD) };

/* A guest's breakpoints.
 *
 *   calls       struct calls: the gate
 *   hits        struct hits
 *   number      the interrupt that a breakpoint is
 *   python      the hook that serves what is left out
 *   pc, size    address of pc's cell, and its bytes
 *   bias        from a breakpoint to what pc is when it is reported
 *   mask        of an address
 *   modes       bits of an address that are the mode's
 *   mode        address of the word where the present mode is
 *   rows, last  table of struct trap_row, and its greatest index: hashed by the address, then the
 *               next one
 *   stepping    struct trap whose slot runs; 0: none that was entered from here
 *   settled     state of the control block: post-handlers run
 *   stepped     state of the control block: the slot runs
 *   flags       the number 0: the third argument of a post-handler
 *   covered     1: jumps cover more than an instruction, and Python looks where a handler sends
 *               the guest
 */
#define TRAPS_WORDS(X) \
    X(calls) X(hits) X(number) X(python) X(pc) X(size) X(bias) X(mask) X(modes) X(mode) \
    X(rows) X(last) X(stepping) \
    X(settled) X(stepped) X(flags) X(covered)
EXPORT const char traps_words[] = TRAPS_WORDS(NAME);
struct traps { TRAPS_WORDS(WORD) };

/* kind: 0 a probe's breakpoint, 1 the end of its slot. A free row's address is all ones. */
struct trap_row { u64 address; struct trap *trap; u64 kind; };

#define HIT_BYTE 0 /* of the gate */
/* A run that was stopped, or had another one nested in it, makes no difference: a breakpoint writes
 * pc. */
#define REASONS_OF_TRAPS(calls) (REASONS_OF_HITS(calls) & ~(0xFFu << 8 * DISTURBED))

static struct trap_row *find_trap(struct traps *traps, u64 address)
{
    struct trap_row *rows = (struct trap_row *)traps->rows;
    u64 n = address * 0x9E3779B97F4A7C15ull >> 40 & traps->last;
    for (; rows[n].address != ~0ull; n = (n + 1) & traps->last)
        if (rows[n].address == address)
            return &rows[n];
    return 0;
}

static void go(struct traps *traps, u64 to)
{
    if (traps->size == 8)
        *(u64 *)traps->pc = to;
    else
        *(u32 *)traps->pc = (u32)to;
}

static int same_mode(struct traps *traps, struct trap *trap)
{
    return *(u32 *)traps->mode == trap->mode;
}

/* 1: a handler has sent the guest to another place, where it goes on in the same mode: `target`
 * becomes that. */
static int sends(struct traps *traps, struct trap *trap, u64 address, struct regs *regs,
                 u64 *target)
{
    if (traps->covered || !regs->is_sent)
        return 0;
    *target = regs->target & traps->mask;
    return (regs->target & ~traps->mask) == trap->mode && *target != address;
}

/* Serve a hit. 0: it was not served, Python is to do it. */
static int breakpoint(struct traps *traps, struct trap *trap, u64 address)
{
    struct calls *calls = (struct calls *)traps->calls;
    struct usual *usual = (struct usual *)trap->usual;
    if (REASONS_OF_TRAPS(calls) || !same_mode(traps, trap))
        return 0;
    trap->hits++;
    if (usual) {
        PyObject *owner = OBJECT(usual->owner);
        Py_IncRef(owner);
        struct regs *regs = report(usual);
        PyObject *result = call_handler(usual, OBJECT(usual->probe));
        /* first: the result's own __bool__ may change what is served; -1: it has raised */
        int truth = !result ? -1 : result == Py_None ? 0 : PyObject_IsTrue(result);
        struct trap_row *row = find_trap(traps, address);
        int same = row && row->trap == trap && same_mode(traps, trap);
        u64 target = 0;
        int sent = same && truth == 1 && sends(traps, trap, address, regs, &target);
        int usually = same && truth == 0 && trap->slot;
        if (usually || sent) {
            Py_DecRef(result);
            regs->is_sent = regs->is_reported = 0;
            if (sent)
                go(traps, target);
        } else {
            finish_with(usual, 0, result);
        }
        Py_DecRef(owner);
        if (!usually)
            return 1;
    }
    if (!trap->boosted) {
        struct control_block *block = block_of(OBJECT(((struct hits *)traps->hits)->block));
        put(&block->state, OBJECT(traps->stepped));
        put(&block->point, OBJECT(trap->point));
        put(&block->probes, OBJECT(trap->probes));
        put(&block->resume, OBJECT(trap->resume));
        ((u8 *)&calls->gate)[HIT_BYTE] = 1;
        traps->stepping = (u64)trap;
    }
    go(traps, trap->slot & traps->mask);
    return 1;
}

/* Serve the end of a slot. 0: it was not served, Python is to do it. */
static int slot_end(struct traps *traps, struct trap *trap, u64 address)
{
    struct calls *calls = (struct calls *)traps->calls;
    struct hits *hits = (struct hits *)traps->hits;
    struct control_block *block = block_of(OBJECT(hits->block));
    struct usual *post = (struct usual *)trap->post;
    if (REASONS_OF_TRAPS(calls) != 1u << 8 * HIT_BYTE || traps->stepping != (u64)trap
        || !same_mode(traps, trap)
        || block->state != OBJECT(traps->stepped) || block->point != OBJECT(trap->point))
        return 0;
    traps->stepping = 0;
    ((u8 *)&calls->gate)[HIT_BYTE] = 0;
    u64 next = trap->next & traps->mask;
    if (post) {
        PyObject *owner = OBJECT(post->owner);
        PyObject *probe = OBJECT(post->probe);
        PyObject *handler = OBJECT(post->handler);
        Py_IncRef(owner);
        struct regs *regs = report(post);
        regs->target = trap->next;
        regs->is_sent = 1;
        PyObject *kept = OBJECT(hits->block);
        Py_IncRef(kept);
        put(&block->state, OBJECT(traps->settled));
        put(&block->child, probe);
        PyObject *args[3] = {probe, OBJECT(hits->regs), OBJECT(traps->flags)};
        PyObject *result = call_with(handler, args, 3);
        put(&block->state, OBJECT(hits->idle));
        put(&block->point, Py_None);
        Py_DecRef(kept);
        struct trap_row *row = find_trap(traps, address);
        int usually = result && regs->is_sent && regs->target == trap->next && row
                      && row->trap == trap && same_mode(traps, trap);
        if (usually) {
            Py_DecRef(result);
            regs->is_sent = regs->is_reported = 0;
            go(traps, next);
        } else {
            finish_with(post, 0, result);
        }
        Py_DecRef(owner);
        return 1;
    }
    put(&block->state, OBJECT(hits->idle));
    put(&block->point, Py_None);
    go(traps, next);
    return 1;
}

/* The engine's hook of interrupts. */
EXPORT void interrupt(void *uc, u32 number, struct traps *traps)
{
    if (number == traps->number) {
        u64 pc = traps->size == 8 ? *(u64 *)traps->pc : *(u32 *)traps->pc;
        u64 address = (pc - traps->bias) & traps->mask;
        struct trap_row *row = find_trap(traps, address);
        if (row) {
            int state = PyGILState_Ensure();
            int served = row->kind ? slot_end(traps, row->trap, address)
                                   : breakpoint(traps, row->trap, address);
            PyGILState_Release(state);
            if (served)
                return;
        }
    }
    ((void (*)(void *, u32, void *))traps->python)(uc, number, 0);
}
