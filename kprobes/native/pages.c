/* Going back to a snapshot: pages that were written are written over with what they held.
 * See kprobes/machine/unicorn/hostpages.py.
 */
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
 *   pagemap          descriptor of /proc/self/pagemap
 *   page             bytes of a page
 *   count, first     how many stretches there are, and the address of the first
 */
#define RETURN_WORDS(X) X(pread) X(madvise) X(pagemap) X(page) X(count) X(first)
EXPORT const char return_words[] = RETURN_WORDS(NAME);
struct way_back { RETURN_WORDS(WORD) };

#define DONT_NEED 4 /* Linux's MADV_DONTNEED */
/* Bits of a page's word in pagemap (Documentation/admin-guide/mm/pagemap.rst). */
#define PRESENT (1ull << 63)
#define SWAPPED (1ull << 62)
#define OF_FILE (1ull << 61)
#define AT_ONCE 64 /* words of pagemap that are read at once */

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
            if (stretch->kind == COPY)
                copy(stretch->host + at, stretch->image + at, way->page);
        }
    }
    return 1;
}

/* Puts every stretch back. How many of those that only tell have changed; -1: the operating system
 * has refused. */
EXPORT int put_back(struct way_back *way)
{
    struct stretch *stretch = (struct stretch *)way->first;
    int changed = 0;
    for (u64 left = way->count; left; left--, stretch++) {
        stretch->changed = 0;
        if (stretch->kind == DROP) {
            int (*madvise)(void *, u64, int) = (int (*)(void *, u64, int))way->madvise;
            if (madvise((void *)stretch->host, stretch->size, DONT_NEED))
                return -1;
        } else if (stretch->size <= FEW * way->page) {
            put_back_different(way, stretch);
        } else if (!put_back_written(way, stretch)) {
            return -1;
        }
        changed += stretch->kind == TELL && stretch->changed;
    }
    return changed;
}
