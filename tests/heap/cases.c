/* Mistakes with heap memory, in the manner of the Juliet suite: for each class a function that makes the mistake
 * (bad_...) and one that does nearly the same correctly (good_...). The program has an allocator of its own, which never
 * gives a block twice, so that all of it runs without a heap check, too: every function returns the same then.
 *
 * CWE numbers are those of the classes.
 */
#include <stddef.h>
#include <stdint.h>

#define BAD(name) uint32_t bad_##name(void)
#define GOOD(name) uint32_t good_##name(void)
#if __SIZEOF_POINTER__ == 8
#define NEW(suffix) _Zn##suffix##m
#define SIZED _ZdlPvm
#else
#define NEW(suffix) _Zn##suffix##j
#define SIZED _ZdlPvj
#endif

/* --- the program's own allocator: a block has its size in front. Nothing is known of its functions where they are
 * called, as if they were in a library */

#define OWN __attribute__((noinline, optnone))

static unsigned char arena[1 << 18] __attribute__((aligned(256)));
static size_t used;

static void *take(size_t alignment, size_t size)
{
    size_t at = (used + sizeof(size_t) + alignment - 1) & -alignment;

    if (size > sizeof(arena) || at + size > sizeof(arena))
        return NULL;
    *(size_t *)(arena + at - sizeof(size_t)) = size;
    used = at + ((size + 15) & -(size_t)16);
    return arena + at;
}

OWN void *malloc(size_t size) { return take(16, size); }
OWN void free(void *block) { (void)block; }

OWN void *calloc(size_t count, size_t size)
{
    unsigned char *block = size && count > sizeof(arena) / size ? NULL : take(16, count * size);

    for (size_t n = 0; block && n < count * size; n++)
        ((volatile unsigned char *)block)[n] = 0;
    return block;
}

OWN void *realloc(void *old, size_t size)
{
    unsigned char *block = take(16, size), *from = old;

    for (size_t n = 0; old && block && n < size && n < ((size_t *)old)[-1]; n++)
        ((volatile unsigned char *)block)[n] = from[n];
    return block;
}

OWN void *aligned_alloc(size_t alignment, size_t size) { return take(alignment, size); }

OWN int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *block = take(alignment, size);

    if (!block)
        return 12;
    *result = block;
    return 0;
}

OWN void *NEW(w)(size_t size) { return malloc(size); }
OWN void *NEW(a)(size_t size) { return malloc(size); }
OWN void _ZdlPv(void *block) { free(block); }
OWN void _ZdaPv(void *block) { free(block); }
OWN void SIZED(void *block, size_t size) { (void)size; free(block); }

/* --- what the cases need: no compiler looks through these */

static void *volatile keep[8];
static volatile uint32_t sink;

static __attribute__((noinline)) void copy(volatile char *to, const volatile char *from, size_t size)
{
    while (size--)
        *to++ = *from++;
}

static __attribute__((noinline)) size_t length(const volatile char *text)
{
    size_t n = 0;

    while (text[n])
        n++;
    return n;
}

static __attribute__((noinline)) void *hidden(void *pointer)
{
    keep[7] = pointer;
    return keep[7];
}

#define ALLOCATE(type, count) ((volatile type *)hidden(malloc((count) * sizeof(type))))
#define RELEASE(pointer) free((void *)(pointer))

/* --- CWE-122: heap overflow, by a byte, by a word, by a copy, by the end of a string, behind realloc, far behind */

static uint32_t fill(int count)
{
    volatile char *text = ALLOCATE(char, 13);

    for (int n = 0; n < count; n++)
        text[n] = 'a';
    RELEASE(text);
    return 1;
}
BAD(overflow_byte) { return fill(14); }
GOOD(overflow_byte) { return fill(13); }

static uint32_t set(int at)
{
    volatile uint32_t *numbers = ALLOCATE(uint32_t, 10);

    numbers[at] = 7;
    RELEASE(numbers);
    return 2;
}
BAD(overflow_word) { return set(10); }
GOOD(overflow_word) { return set(9); }

static uint32_t twice(size_t size)
{
    volatile char *from = ALLOCATE(char, 100), *to = ALLOCATE(char, 50);

    for (int n = 0; n < 100; n++)
        from[n] = (char)n;
    copy(to, from, size);
    RELEASE(from);
    RELEASE(to);
    return 3;
}
BAD(overflow_copy) { return twice(60); }
GOOD(overflow_copy) { return twice(50); }

static uint32_t text(size_t more)
{
    static const char word[] = "ten chars!";
    volatile char *kept = ALLOCATE(char, length(word) + more);

    copy(kept, word, length(word) + 1);
    RELEASE(kept);
    return 4;
}
BAD(overflow_string) { return text(0); }
GOOD(overflow_string) { return text(1); }

static uint32_t shrunk(int at)
{
    volatile char *text = ALLOCATE(char, 64);

    for (int n = 0; n < 64; n++)
        text[n] = 1;
    text = hidden(realloc((void *)text, 24));
    text[at] = 2;
    sink = text[0];
    RELEASE(text);
    return 5;
}
BAD(overflow_shrunk) { return shrunk(24); }
GOOD(overflow_shrunk) { return shrunk(23); }

/* --- CWE-126, CWE-127, CWE-124: reads behind a block, reads and writes in front of it */

static uint32_t sum(int from, int to)
{
    volatile uint16_t *numbers = ALLOCATE(uint16_t, 9);
    uint32_t all = 0;

    for (int n = 0; n < 9; n++)
        numbers[n] = 1;
    for (int n = from; n < to; n++)
        all += numbers[n];
    sink = all;
    RELEASE(numbers);
    return 6;
}
BAD(overread) { return sum(0, 10); }
GOOD(overread) { return sum(0, 9); }
BAD(underread) { return sum(-1, 9); }
GOOD(underread) { return sum(0, 8); }

static uint32_t before(int at)
{
    volatile char *text = ALLOCATE(char, 20);

    text[at] = 'x';
    RELEASE(text);
    return 7;
}
BAD(underwrite) { return before(-1); }
GOOD(underwrite) { return before(0); }

/* --- CWE-416: use after free */

struct node { struct node *next; uint32_t value; };

static uint32_t list(int early)
{
    volatile struct node *node = ALLOCATE(struct node, 1);
    uint32_t value;

    node->value = 8;
    if (early)
        RELEASE(node);
    value = node->value;
    if (!early)
        RELEASE(node);
    sink = value;
    return 8;
}
BAD(use_after_free_read) { return list(1); }
GOOD(use_after_free_read) { return list(0); }

static uint32_t late(int early)
{
    volatile struct node *node = ALLOCATE(struct node, 1);

    if (early)
        RELEASE(node);
    node->value = 9;
    if (!early)
        RELEASE(node);
    return 9;
}
BAD(use_after_free_write) { return late(1); }
GOOD(use_after_free_write) { return late(0); }

static uint32_t moved(int again)
{
    volatile char *text = ALLOCATE(char, 8), *longer = hidden(realloc((void *)text, 4000));

    longer[0] = 1;
    (again ? text : longer)[0] = 2;
    RELEASE(longer);
    return 10;
}
BAD(use_after_realloc) { return moved(1); }
GOOD(use_after_realloc) { return moved(0); }

/* --- CWE-415: double free */

static uint32_t freed(int times)
{
    volatile char *text = ALLOCATE(char, 30);

    while (times--)
        RELEASE(text);
    return 11;
}
BAD(double_free) { return freed(2); }
GOOD(double_free) { return freed(1); }

/* --- CWE-590, CWE-761: free of what is on the stack, of what is static, of the midst of a block */

static uint32_t other(int kind)
{
    char local[16];
    static char global[16];
    char *block = hidden(malloc(16));

    copy(local, global, sizeof(local));
    free(hidden(kind == 1 ? local : kind == 2 ? global : kind == 3 ? block + 4 : block));
    if (kind)
        free(block);
    return 12;
}
BAD(free_of_stack) { return other(1); }
GOOD(free_of_stack) { return other(0); }
BAD(free_of_static) { return other(2); }
GOOD(free_of_static) { return other(0); }
BAD(free_of_midst) { return other(3); }
GOOD(free_of_midst) { return other(0); }

/* --- CWE-762: mismatched allocation and release */

BAD(mismatched_free) { free(hidden(NEW(w)(8))); return 13; }
GOOD(mismatched_free) { _ZdlPv(hidden(NEW(w)(8))); return 13; }
BAD(mismatched_delete) { _ZdlPv(hidden(malloc(8))); return 14; }
GOOD(mismatched_delete) { free(hidden(malloc(8))); return 14; }
BAD(mismatched_array) { _ZdlPv(hidden(NEW(a)(8))); return 15; }
GOOD(mismatched_array) { _ZdaPv(hidden(NEW(a)(8))); return 15; }
BAD(mismatched_size) { SIZED(hidden(NEW(w)(8)), 16); return 16; }
GOOD(mismatched_size) { SIZED(hidden(NEW(w)(8)), 8); return 16; }

/* --- CWE-401: leaks, of a block and of what only that led to */

static uint32_t chain(int release)
{
    struct node *first = hidden(malloc(sizeof(*first))), *second = hidden(malloc(sizeof(*second)));

    first->next = second;
    second->next = NULL;
    second->value = 17;
    keep[7] = NULL;
    if (release) {
        free(second);
        free(first);
    }
    return 17;
}
BAD(leak) { return chain(0); }
GOOD(leak) { return chain(1); }
GOOD(leak_that_is_kept)
{
    struct node *first = malloc(sizeof(*first));

    first->next = malloc(sizeof(*first));
    first->next->next = NULL;
    keep[0] = first;
    return 18;
}

/* --- CWE-457: reads of what was never written */

static uint32_t unset(size_t written)
{
    volatile char *text = ALLOCATE(char, 12);
    uint32_t all = 0;

    for (size_t n = 0; n < written; n++)
        text[n] = 1;
    for (size_t n = 0; n < 12; n++)
        all += text[n];
    sink = all;
    RELEASE(text);
    return 19;
}
BAD(uninitialized) { return unset(11); }
GOOD(uninitialized) { return unset(12); }
GOOD(uninitialized_calloc)
{
    volatile uint32_t *numbers = hidden(calloc(5, 4));
    uint32_t all = 0;

    for (int n = 0; n < 5; n++)
        all += numbers[n];
    numbers = hidden(realloc((void *)numbers, 40));
    for (int n = 0; n < 5; n++)
        all += numbers[n];
    RELEASE(numbers);
    return 20 + all;
}

/* --- programs without mistakes: what they return depends on nothing but their argument */

static uint32_t next_number(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

struct tree { struct tree *left, *right; uint32_t key; char *name; };

static struct tree *insert(struct tree *tree, uint32_t key)
{
    if (!tree) {
        tree = calloc(1, sizeof(*tree));
        tree->key = key;
        tree->name = malloc(key % 40 + 1);
        for (uint32_t n = 0; n < key % 40; n++)
            ((volatile char *)tree->name)[n] = (char)('a' + n % 26);
        tree->name[key % 40] = 0;
    } else if (key < tree->key) {
        tree->left = insert(tree->left, key);
    } else {
        tree->right = insert(tree->right, key);
    }
    return tree;
}

static uint32_t walk(struct tree *tree, uint32_t sum, int release)
{
    if (!tree)
        return sum;
    sum = walk(tree->left, sum, release) * 31 + tree->key;
    sum = sum * 31 + (uint32_t)length(tree->name);
    sum = walk(tree->right, sum, release);
    if (release) {
        free(tree->name);
        free(tree);
    }
    return sum;
}

/* A tree of strings, an array that grows, aligned blocks, sizes from 0 on. */
uint32_t work(uint32_t seed)
{
    struct tree *tree = NULL;
    uint32_t state = seed, sum = 0, count = 0, room = 0, *numbers = NULL;
    void *aligned;

    for (int n = 0; n < 60; n++)
        tree = insert(tree, next_number(&state) % 5000);
    for (int n = 0; n < 100; n++) {
        if (count == room) {
            room = room ? 2 * room : 4;
            numbers = realloc(numbers, room * sizeof(*numbers));
        }
        numbers[count++] = next_number(&state);
    }
    for (uint32_t n = 0; n < count; n++)
        sum = sum * 33 + numbers[n];
    free(numbers);
    sum = walk(tree, sum, 0);
    sum = walk(tree, sum, 1);
    for (size_t alignment = sizeof(void *); alignment <= 256; alignment *= 2) {
        unsigned char *block = aligned_alloc(alignment, alignment);

        sum = sum * 2 + !((uintptr_t)block & (alignment - 1));
        block[alignment - 1] = 1;
        free(block);
        sum = sum * 2 + (posix_memalign(&aligned, alignment, 3) == 0 && !((uintptr_t)aligned & (alignment - 1)));
        free(aligned);
    }
    sum = sum * 2 + (malloc((size_t)1 << (8 * sizeof(size_t) - 2)) == NULL);
    sum = sum * 2 + (calloc((size_t)-1 / 4, 8) == NULL);
    free(NULL);
    free(malloc(0));
    return sum;
}

/* The same as many times: for figures. */
uint32_t work_often(uint32_t times)
{
    uint32_t sum = 0;

    while (times--) {
        used = 0;
        sum = sum * 7 + work(times);
    }
    return sum;
}

void _start(void) { sink = work(1); }
