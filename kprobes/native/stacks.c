/* Walks of a stack: from pc outwards, by rows that Python has made of call frame information and
 * keeps in a table.
 *
 * What a walk is, and what ends it, is in kprobes/debug/unwind.py and kprobes/core/hit/trace.py:
 * this does the same where each row is of the usual kind (the caller's registers are the
 * function's, or in its frame) and memory is the machine's own. Whatever else there is is left to
 * Python, which begins anew. A stack is hostile: its words are only compared, and looked up.
 */
#include "python.h"
#include "guest.h"

#define MOST 64 /* addresses of a stack */
#define REGISTERS 128
#define TASKS 4 /* byte of the gate: see kprobes.machine.unicorn.host.hostcode */

/* How a function's caller is found at an instruction. Registers are numbers of places; 0 is the
 * stack pointer.
 *
 *   base, offset    register, and what is added to it: the canonical frame address
 *   on_stack, link  1: the return address is `link` bytes from that address; 0: it is in the
 *                   register `link`
 *   saved           how many struct saved follow
 */
#define STEP_WORDS(X) X(base) X(offset) X(on_stack) X(link) X(saved)
EXPORT const char step_words[] = STEP_WORDS(NAME);
/* Where the caller's register is: `offset` bytes from the canonical frame address; lost: nowhere.
 * */
struct saved { u64 name, lost, offset; };
struct step { STEP_WORDS(WORD) struct saved where[]; };

/* What is known of an instruction. A free row has no kind.
 *
 *   kind       what is to be done there
 *   outermost  1: the function has no caller
 *   entry      whether a function begins there, of BY_POINTER
 */
enum { FREE, STEP, BY_POINTER, BY_PYTHON };
enum { NOT_KNOWN, NO_ENTRY, ENTRY };
#define ROW_WORDS(X) X(pc) X(kind) X(step) X(outermost) X(entry)
EXPORT const char row_words[] = ROW_WORDS(NAME);
struct row { ROW_WORDS(WORD) };

/* One Kprobes' walks, on one CPU. Objects are Python's, which keeps them.
 *
 *   view, regs       words of the CPU's registers, and their object
 *   calls, simple    struct calls: those that the machine follows; 0: it follows none. 1: their
 *                    callers have them return to what they have noted
 *   younger, own     objects of other followed calls, a list
 *   trampoline, known    of the object `followed`: attribute that is where followed calls return,
 *                        mode bits included
 *   symbols, files, changes   object, and names of its attributes; `seen_files`, `seen_changes`:
 *                             what these were when the table was begun
 *   state, exit      object, and name of its attribute that is where calls of Python's return
 *   look             called with an address that has no row in the table, which is to have one
 *   rows, last       the table: hashed by the address, then the next one; and its greatest index
 *   places           struct place of each register that there is a number for
 *   names            how many these are
 *   mask, mode_bits  of an address
 *   is_signed        1: return addresses may have a signature in the bits from 48 on (AArch64)
 *   above            bytes from a canonical frame address to the caller's stack pointer register
 *   bias             added to a return address
 *   upwards          1: the stack grows upwards
 *   pointer          1: there are frame pointers, in the register `frame`: `next` bytes from where
 *                    it points is that of the caller, `address` bytes the return address; from the
 *                    caller's if `outside`
 *   points           object that contains addresses of probes
 *   linked, link     where a return address is at a function's entry: see enum; number of the
 *                    register
 *   pushed           bytes that a call pushes
 *   return_mask, return_value    a return address whose bits in the first are the second goes back to
 *                    code that an exception has interrupted, which is Python's; mask 0: none does
 *   mark             the number at the end of a stack that is not complete
 *   asked            address that has no row
 */
#define WALK_WORDS(X) \
    X(view) X(regs) X(calls) X(simple) X(own) X(followed) X(trampoline) X(symbols) X(files) \
    X(changes) X(seen_files) X(seen_changes) X(state) X(exit) X(look) X(rows) X(last) X(places) \
    X(names) X(mask) X(mode_bits) X(is_signed) X(above) X(bias) X(upwards) X(pointer) X(frame) \
    X(next) X(address) X(outside) X(points) X(linked) X(link) X(pushed) X(return_mask) \
    X(return_value) X(mark) X(asked)
EXPORT const char walk_words[] = WALK_WORDS(NAME);
struct walk { WALK_WORDS(WORD) };
enum { BY_OTHERS, ON_STACK, IN_REGISTER }; /* of `linked` */

/* What a walk comes to, if it is not a number of addresses: Python is to walk; `asked` is to get a
 * row; Python has raised something. */
enum { PYTHON = -1, ROW = -2, RAISED = -3 };

/* Where a register's value is: in the CPU, in memory, here, nowhere. */
enum { LIVE, SAVED, HERE, LOST };

struct frame {
    const struct walk *walk;
    const struct view *view;
    struct call *followed; /* above the youngest one that the walk has not come to */
    u64 trampoline;
    u64 word[REGISTERS];
    u8 kind[REGISTERS];
};

static struct row *row_of(const struct walk *walk, u64 pc)
{
    struct row *rows = (struct row *)walk->rows;
    u64 first = pc * 0x9E3779B97F4A7C15ull >> 40 & walk->last;
    for (u64 n = first; rows[n].kind != FREE; n = (n + 1) & walk->last)
        if (rows[n].pc == pc)
            return &rows[n];
    return 0;
}

/* A register's value; `what` is where it is, if it is not there: LOST, or LIVE for one that only
 * Python can read. */
static int value_of(const struct frame *frame, u64 name, u64 *value, int *what)
{
    const struct place *place = (const struct place *)frame->walk->places + name;
    *what = frame->kind[name];
    switch (*what) {
    case LIVE:
        if (place->size)
            *value = value_at(place);
        return place->size != 0;
    case SAVED:
        *what = LIVE;
        return load(frame->view, frame->word[name], value);
    case HERE:
        *value = frame->word[name];
        return 1;
    }
    return 0;
}

/* What a walk does next: goes on; ends at the outermost function; ends before it; is Python's. */
enum { ON, ENDED, CUT, LEFT };

static int go_up(struct frame *frame, const struct step *step, u64 *link)
{
    u64 cfa, back, mask = frame->walk->mask;
    int what;
    if (!value_of(frame, step->base, &cfa, &what))
        return what == LOST ? CUT : LEFT;
    cfa = (cfa + step->offset) & mask;
    if (step->on_stack ? !load(frame->view, (cfa + step->link) & mask, &back)
                       : !value_of(frame, step->link, &back, &what))
        return !step->on_stack && what == LOST ? CUT : LEFT;
    for (u64 n = 0; n < step->saved; n++) {
        const struct saved *saved = &step->where[n];
        frame->kind[saved->name] = saved->lost ? LOST : SAVED;
        frame->word[saved->name] = (cfa + saved->offset) & mask;
    }
    frame->word[0] = (cfa + frame->walk->above) & mask;
    *link = (back + frame->walk->bias) & mask;
    return back ? ON : ENDED;
}

/* By the frame pointer, of code that has no call frame information. */
static int go_up_by_pointer(struct frame *frame, u64 *link)
{
    const struct walk *walk = frame->walk;
    u64 base, above, ignored, mask = walk->mask;
    int what;
    /* Python reads them all, and ends where it cannot */
    for (u64 name = 0; name < walk->names; name++)
        if (frame->kind[name] == SAVED && !load(frame->view, frame->word[name], &ignored))
            return LEFT;
    if (!walk->pointer)
        return CUT;
    if (!value_of(frame, walk->frame, &base, &what))
        return what == LOST ? CUT : LEFT;
    if (!base)
        return CUT;
    if (!load(frame->view, (base + walk->next) & mask, &above))
        return LEFT;
    if (above <= base)
        return CUT;
    if (!load(frame->view, ((walk->outside ? above : base) + walk->address) & mask, link))
        return LEFT;
    frame->kind[walk->frame] = HERE;
    frame->word[walk->frame] = above;
    frame->word[0] = base;
    return *link ? ON : CUT;
}

/* The youngest call that the machine follows, and that the walk has not come to; 0: there is none.
 * */
static struct call *next_followed(struct frame *frame)
{
    struct calls *calls = (struct calls *)frame->walk->calls;
    u64 sp = stack_pointer(frame->view);
    if (!calls)
        return 0;
    for (; (u64)frame->followed > calls->base; frame->followed--) {
        struct call *call = frame->followed - 1;
        /* else the call was abandoned, and will not return */
        if (frame->walk->upwards ? call->frame <= sp : call->frame >= sp)
            return call;
    }
    return 0;
}

/* True where Python knows of more followed calls, or might. */
static int others(const struct walk *walk)
{
    struct calls *calls = (struct calls *)walk->calls;
    if (!calls || (!walk->simple && calls->top != calls->base))
        return 1;
    return ((u8 *)&calls->gate)[TASKS] || PyList_Size(OBJECT(walk->own)) != 0;
}

/* Whether a return address has bits that may be a signature, which Python takes off. */
static int may_be_signed(const struct walk *walk, u64 link)
{
    return walk->is_signed && link >> 48 && link >> 52 != 0xFFF;
}

/* Whether an address is what an exception's handler returns to. */
static int is_exception_return(const struct walk *walk, u64 link)
{
    return walk->return_mask && (link & walk->return_mask) == walk->return_value;
}

/* The true return address behind one that was found. */
static int see_through(struct frame *frame, u64 *link)
{
    if (may_be_signed(frame->walk, *link))
        return LEFT;
    if (*link != frame->trampoline)
        return is_exception_return(frame->walk, *link) ? LEFT : ON;
    struct call *call = others(frame->walk) ? 0 : next_followed(frame);
    if (!call)
        return LEFT;
    *link = call->link;
    frame->followed--;
    return is_exception_return(frame->walk, *link) ? LEFT : ON;
}

static u64 attribute(u64 object, u64 name, int *wrong)
{
    PyObject *value = PyObject_GetAttr(OBJECT(object), OBJECT(name));
    u64 number = value ? PyLong_AsUnsignedLongLongMask(value) : ~0ull;
    if (value)
        Py_DecRef(value);
    if (number == ~0ull && PyErr_Occurred())
        *wrong = 1;
    return number;
}

/* Whether a function begins at pc: 1, 0; ROW, RAISED. Python takes every address without a probe
 * for none. */
static int at_entry(const struct walk *walk, const struct row *row)
{
    int wrong = 0;
    if (row->entry == NO_ENTRY)
        return 0;
    PyObject *pc = PyLong_FromUnsignedLongLong(row->pc);
    int probed = pc ? PySequence_Contains(OBJECT(walk->points), pc) : -1;
    if (pc)
        Py_DecRef(pc);
    if (probed <= 0)
        return probed ? RAISED : 0;
    u64 changes = attribute(walk->symbols, walk->changes, &wrong);
    if (wrong)
        return RAISED;
    return row->entry == ENTRY && changes == walk->seen_changes ? 1 : ROW;
}

/* Where the function returns to that begins at pc. */
static int link_of(const struct frame *frame, u64 *link)
{
    const struct walk *walk = frame->walk;
    int what;
    if (walk->linked == ON_STACK)
        return load(frame->view, stack_pointer(frame->view), link);
    if (walk->linked != IN_REGISTER || !value_of(frame, walk->link, link, &what))
        return 0;
    *link = (*link + walk->bias) & walk->mask;
    return 1;
}

/* By frame pointers alone, where the code at pc has no call frame information, and no call is
 * followed. Appends to `found`, of which there are *count. */
static int go_along_pointers(const struct frame *frame, u64 limit, u64 *found, u64 *count)
{
    const struct walk *walk = frame->walk;
    const struct view *view = frame->view;
    u64 base, above, link, mask = walk->mask, sp = stack_pointer(view);
    int what, seen = 0;
    if (!walk->pointer)
        return CUT;
    if (!value_of(frame, walk->frame, &base, &what))
        return LEFT;
    if (walk->upwards ? base > sp : base < sp) /* anything, or the frame of an outer caller */
        return CUT;
    while (base && *count < limit) {
        if (!load(view, (base + walk->next) & mask, &above))
            return LEFT;
        if (walk->outside && !above) /* no frame has the return address */
            return seen ? ENDED : CUT;
        if (!load(view, ((walk->outside ? above : base) + walk->address) & mask, &link))
            return LEFT;
        if (!link)
            return seen ? ENDED : CUT;
        u64 caller = link & ~walk->mode_bits;
        if (link == frame->trampoline || !find(view, caller, 1))
            return LEFT;
        found[(*count)++] = caller;
        seen = 1;
        if (above <= base)
            return above ? CUT : ENDED;
        base = above;
    }
    return seen && !base ? ENDED : CUT;
}

/* A stack: how many addresses. *complete: the outermost caller is the last one. *refused: pc alone
 * is known, and not even frame pointers could tell more; that is an error where a stack is asked for.
 */
static int walked(struct walk *walk, u64 limit, u64 *found, int *complete, int *refused)
{
    const struct regs *regs = regs_of(OBJECT(walk->regs));
    struct frame frame;
    int wrong = 0, how = ON, alone = 0;
    *refused = 0;
    if (!regs->is_reported || !limit || limit > MOST)
        return PYTHON;
    PyObject *files = PyObject_GetAttr(OBJECT(walk->symbols), OBJECT(walk->files));
    if (!files)
        return RAISED;
    Py_DecRef(files); /* the symbols have it */
    u64 end = attribute(walk->state, walk->exit, &wrong) & ~walk->mode_bits;
    frame.trampoline = attribute(walk->followed, walk->trampoline, &wrong);
    if (wrong)
        return RAISED;
    u64 lookup = walk->asked = found[0] = regs->reported;
    u64 count = 1;
    if (is_exception_return(walk, lookup)) /* the handler has just returned */
        return PYTHON;
    if ((u64)files != walk->seen_files)
        return ROW;
    frame.walk = walk;
    frame.view = (const struct view *)walk->view;
    frame.followed = walk->calls ? (struct call *)((struct calls *)walk->calls)->top : 0;
    for (u64 name = 0; name < walk->names; name++)
        frame.kind[name] = LIVE;
    frame.kind[0] = HERE;
    frame.word[0] = value_at((const struct place *)walk->places);
    struct row *row = row_of(walk, lookup);
    if (!row)
        return ROW;
    if (row->kind == BY_POINTER) {
        int entry = at_entry(walk, row);
        u64 link;
        if (entry < 0)
            return entry;
        if (entry) {
            if (limit == 1 || !link_of(&frame, &link) || see_through(&frame, &link) != ON)
                return PYTHON;
            found[count++] = link & ~walk->mode_bits;
            walk->asked = lookup = found[1] - 1;
            frame.word[0] += walk->pushed; /* as the caller has it */
            row = row_of(walk, lookup);
            if (!row)
                return ROW;
        }
        if (row->kind == BY_POINTER) {
            if (others(walk) || next_followed(&frame))
                return PYTHON; /* they may be the next ones up */
            how = go_along_pointers(&frame, limit, found, &count);
            alone = count == 1 && !walk->pointer;
            lookup = found[count - 1] - (count > 1);
        }
    }
    u64 first = count; /* of which the function may have no stack of its own */
    while (how == ON && count < limit) {
        row = row_of(walk, lookup);
        u64 link = 0, before = frame.word[0];
        walk->asked = lookup;
        if (!row)
            return ROW;
        if (row->kind == BY_PYTHON)
            return PYTHON;
        how = row->kind == STEP ? go_up(&frame, (const struct step *)row->step, &link)
                                : go_up_by_pointer(&frame, &link);
        if (how == ON)
            how = see_through(&frame, &link);
        if (how != ON)
            break;
        lookup = found[count++] = link & ~walk->mode_bits;
        if (lookup == end)
            how = ENDED;
        else if (count > first + 1
                 && (walk->upwards ? frame.word[0] >= before : frame.word[0] <= before))
            how = CUT;
        lookup--;
    }
    *complete = how == ENDED;
    if (how == LEFT)
        return PYTHON;
    if (how == ENDED)
        return (int)count;
    if (others(walk) || next_followed(&frame))
        return PYTHON; /* they may be the next ones up */
    u64 changes = attribute(walk->symbols, walk->changes, &wrong);
    row = row_of(walk, lookup);
    walk->asked = lookup;
    if (wrong)
        return RAISED;
    if (!row || changes != walk->seen_changes)
        return ROW;
    *complete = (end && found[count - 1] == end) || row->outermost;
    *refused = alone && !*complete;
    return (int)count;
}

/* The stack as records keep it, a new reference; None: Python is to walk; 0: it has raised
 * something. `strict`: Python is to say why, where pc alone is known. */
static PyObject *kept_stack(struct walk *walk, u64 limit, int strict)
{
    u64 found[MOST];
    int complete = 0, refused = 0, count = ROW;
    for (int turn = 0; count == ROW && turn < 4 * MOST; turn++) {
        count = walked(walk, limit, found, &complete, &refused);
        if (count != ROW)
            break;
        PyObject *pc = PyLong_FromUnsignedLongLong(walk->asked);
        PyObject *look = OBJECT(walk->look);
        PyObject *done = pc ? PyObject_CallFunctionObjArgs(look, pc, (PyObject *)0) : 0;
        if (pc)
            Py_DecRef(pc);
        if (!done)
            return 0;
        Py_DecRef(done);
    }
    if (count == RAISED)
        return 0;
    if (count < 0 || (refused && strict)) {
        Py_IncRef(Py_None);
        return Py_None;
    }
    PyObject *stack = PyTuple_New(count + !complete);
    for (int n = 0; stack && n < count; n++) {
        PyObject *address = PyLong_FromUnsignedLongLong(found[n]);
        if (!address) {
            Py_DecRef(stack);
            return 0;
        }
        PyTuple_SetItem(stack, n, address); /* takes it */
    }
    if (stack && !complete) {
        Py_IncRef(OBJECT(walk->mark));
        PyTuple_SetItem(stack, count, OBJECT(walk->mark));
    }
    return stack;
}

/* Of two functions of Python's, both of which keep in `self` (address of the words, whatever they
 * need, the plain function): walk(regs, limit), and kept(regs), which calls the plain function
 * where Python is to walk. */
static struct walk *words_of(PyObject *self)
{
    return (struct walk *)PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(self, 0));
}

static PyObject *walk_stack(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    struct walk *walk = words_of(self);
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "walk(regs, limit)");
        return 0;
    }
    Py_ssize_t limit = PyLong_AsSsize_t(args[1]);
    if (limit == -1)
        PyErr_Clear(); /* no number of ours: Python says what it is */
    if (args[0] == OBJECT(walk->regs) && limit > 0)
        return kept_stack(walk, limit, 1);
    Py_IncRef(Py_None);
    return Py_None;
}

static PyObject *keep_stack(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    struct walk *walk = words_of(self);
    if (count != 1) {
        PyErr_SetString(PyExc_TypeError, "kept(regs)");
        return 0;
    }
    if (args[0] == OBJECT(walk->regs)) {
        PyObject *stack = kept_stack(walk, MOST, 0);
        if (stack != Py_None)
            return stack;
        Py_DecRef(stack);
    }
    return PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, 2), args[0], (PyObject *)0);
}

static PyMethodDef walking = {"walk", (PyCFunction)(void *)walk_stack, METH_FASTCALL, 0};
static PyMethodDef keeping = {"kept", (PyCFunction)(void *)keep_stack, METH_FASTCALL, 0};

/* The functions, as Python calls them. */
EXPORT PyObject *stack_walker(PyObject *self) { return PyCFunction_NewEx(&walking, self, 0); }
EXPORT PyObject *stack_keeper(PyObject *self) { return PyCFunction_NewEx(&keeping, self, 0); }
