/* Going back to a snapshot: pages that were written are written over with what they held.
 * See kprobes/machine/unicorn/hostpages.py.
 */
#include "python.h"
#include "words.h"

/* What is done with a stretch. COPY: pages that were written get the image's bytes. DROP: all pages
 * are dropped, and come from the image when they are touched again. TELL: nothing; `changed`
 * becomes 1 if a page was written. */
enum { COPY, DROP, TELL };

/* Some pages of this process, a private mapping of an image.
 *
 *   host, size   address and bytes, of whole pages
 *   image        address where the same bytes of the image can be read
 */
#define STRETCH_WORDS(X) X(host) X(size) X(image) X(kind) X(changed)
EXPORT const char stretch_words[] = STRETCH_WORDS(NAME);
struct stretch { STRETCH_WORDS(WORD) };

/* A snapshot's stretches.
 *
 *   pread, madvise   the C library's functions
 *   getrusage        the same; 0: this system does not count page faults
 *   pagemap          descriptor of /proc/self/pagemap
 *   page             bytes of a page
 *   count, first     how many stretches there are, and the address of the first
 *   faults           page faults of this process when its pages were looked at last; 0: they are to
 *                    be looked at
 *   copies, room     address of struct copied, and how many there is room for
 *   copied           how many of them were found at that look
 *   engine, context, restore   the engine's handle, its context that has the registers, and
 *                    uc_context_restore(); context 0: registers are the caller's to put back
 *
 * A page that is written for the first time is a page fault. So as long as there are no more faults
 * the pages that were written are those that were found, and the system need not be asked about
 * them: that takes as long as all else.
 */
#define RETURN_WORDS(X) \
    X(pread) X(madvise) X(getrusage) X(pagemap) X(page) X(count) X(first) X(faults) X(copies) \
    X(room) X(copied) X(engine) X(context) X(restore)
EXPORT const char return_words[] = RETURN_WORDS(NAME);
struct way_back { RETURN_WORDS(WORD) };

/* A page that was written: its address, and that of what it held. */
struct copied { u64 host, image; };

#define DONT_NEED 4 /* Linux's MADV_DONTNEED */
/* Bits of a page's word in pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PRESENT (1ull << 63)
#define SWAPPED (1ull << 62)
#define OF_FILE (1ull << 61)
#define AT_ONCE 256 /* words of pagemap that are read at once */
/* Pages of a stretch to be dropped in which written ones are looked for. A page that is only read
 * need not be dropped; to drop it makes a fault. */
#define LOOKED_AT 1024
/* Of getrusage(): RUSAGE_SELF; words of struct rusage, and those that count minor and major faults. */
enum { SELF = 0, USAGE = 64, MINOR = 8, MAJOR = 9 };

static void copy(u64 to, u64 from, u64 bytes)
{
    typedef u64 __attribute__((may_alias)) word;
    for (u64 n = 0; n < bytes / sizeof(word); n++)
        ((word *)to)[n] = ((const word *)from)[n];
}

/* A few pages are compared, which takes less than asking about them. */
#define FEW 4

static int differ(u64 one, u64 other, u64 bytes)
{
    typedef u64 __attribute__((may_alias)) word;
    u64 differs = 0;
    for (u64 n = 0; n < bytes / sizeof(word); n++)
        differs |= ((const word *)one)[n] ^ ((const word *)other)[n];
    return differs != 0;
}

static void put_back_different(struct way_back *way, struct stretch *stretch)
{
    for (u64 at = 0; at < stretch->size; at += way->page) {
        if (!differ(stretch->host + at, stretch->image + at, way->page))
            continue;
        stretch->changed = 1;
        if (stretch->kind == COPY)
            copy(stretch->host + at, stretch->image + at, way->page);
    }
}

/* 1: done. 0: the operating system does not say which pages were written. */
static int put_back_written(struct way_back *way, struct stretch *stretch)
{
    u64 flags[AT_ONCE];
    for (u64 at = 0; at < stretch->size;) {
        u64 pages = (stretch->size - at) / way->page;
        u64 bytes = (pages < AT_ONCE ? pages : AT_ONCE) * sizeof *flags;
        u64 place = (stretch->host + at) / way->page * sizeof *flags;
        long (*pread)(int, void *, u64, long) = (long (*)(int, void *, u64, long))way->pread;
        if (pread((int)way->pagemap, flags, bytes, (long)place) != (long)bytes)
            return 0;
        for (u64 n = 0; n < bytes / sizeof *flags; n++, at += way->page) {
            if (!(flags[n] & (PRESENT | SWAPPED)) || flags[n] & OF_FILE)
                continue;
            stretch->changed = 1;
            if (stretch->kind != COPY)
                continue;
            copy(stretch->host + at, stretch->image + at, way->page);
            if (way->copied < way->room)
                ((struct copied *)way->copies)[way->copied++] =
                    (struct copied){stretch->host + at, stretch->image + at};
            else
                way->faults = 0;
        }
    }
    return 1;
}

/* 1: done. 0: the operating system has refused. */
static int drop(struct way_back *way, struct stretch *stretch)
{
    int (*madvise)(void *, u64, int) = (int (*)(void *, u64, int))way->madvise;
    stretch->changed = 1;
    if (stretch->size <= LOOKED_AT * way->page) {
        stretch->changed = 0;
        if (!put_back_written(way, stretch))
            return 0;
    }
    return !stretch->changed || !madvise((void *)stretch->host, stretch->size, DONT_NEED);
}

/* The process's page faults so far; 0: unknown. */
static u64 page_faults(const struct way_back *way)
{
    u64 usage[USAGE];
    int (*getrusage)(int, void *) = (int (*)(int, void *))way->getrusage;
    return getrusage && !getrusage(SELF, usage) ? usage[MINOR] + usage[MAJOR] : 0;
}

/* Puts every stretch back. How many of those that only tell have changed; -1: the operating system
 * has refused. */
static int put_back(struct way_back *way)
{
    struct stretch *stretch = (struct stretch *)way->first;
    /* before the look: a page that is written meanwhile makes the next one look again */
    u64 faults = page_faults(way);
    int changed = 0;
    if (faults && faults == way->faults) {
        struct copied *page = (struct copied *)way->copies;
        for (u64 left = way->copied; left; left--, page++)
            copy(page->host, page->image, way->page);
        return 0;
    }
    way->faults = faults;
    way->copied = 0;
    for (u64 left = way->count; left; left--, stretch++) {
        stretch->changed = 0;
        /* such a look notes no pages, so it is for where faults are not counted */
        if (!faults && stretch->kind != DROP && stretch->size <= FEW * way->page)
            put_back_different(way, stretch);
        else if (!(stretch->kind == DROP ? drop : put_back_written)(way, stretch))
            return -1;
        changed += stretch->kind == TELL && stretch->changed;
    }
    if (changed)
        way->faults = 0; /* the caller has not put those back yet */
    return changed;
}

/* go_back(): puts the registers and every stretch back; as put_back(), or -2: the engine has refused
 * the registers, and nothing was done. self: address of struct way_back. */
static PyObject *go_back(PyObject *self, PyObject *unused)
{
    struct way_back *way = (struct way_back *)PyLong_AsUnsignedLongLongMask(self);
    /* before memory: where the CPU saves state in memory this may write there */
    if (way->context && ((int (*)(u64, u64))way->restore)(way->engine, way->context))
        return PyLong_FromLong(-2);
    return PyLong_FromLong(put_back(way));
}

static PyMethodDef going_back = {"go_back", go_back, METH_NOARGS, 0};

/* The function, as Python calls it. self: address of struct way_back. */
EXPORT PyObject *back_goer(PyObject *self) { return PyCFunction_NewEx(&going_back, self, 0); }
