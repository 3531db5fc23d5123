/* The only program of kernel.py's guest: a kernel's first process. It does what the host asks of it. */

typedef unsigned long word;

enum { READ_FILE = 1, WRITE_FILE, WORK, INSERT, REMOVE, READS, BOTH };

/* What is asked, and the answer. The host writes this at ask(), and reads it at answer(). */
struct {
    word what, count, result;
    char name[256], text[512];
    char data[24 << 20];
} box __attribute__((aligned(4096)));

#if defined(__x86_64__)
enum { READ, WRITE, OPEN = 257, CLOSE = 3, MKDIR = 258, MOUNT = 165, INSERT_MODULE = 313, REMOVE_MODULE = 176,
       CLONE = 56, EXIT = 60, WAIT = 61, SET_AFFINITY = 203 };

static word call(word number, word a, word b, word c, word d, word e)
{
    register word r10 __asm__("r10") = d, r8 __asm__("r8") = e;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    return number;
}
#else
enum { READ = 63, WRITE, OPEN = 56, CLOSE, MKDIR = 34, MOUNT = 40, INSERT_MODULE = 273, REMOVE_MODULE = 106,
       CLONE = 220, EXIT = 93, WAIT = 260, SET_AFFINITY = 122 };

static word call(word number, word a, word b, word c, word d, word e)
{
    register word x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b;
    register word x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
    return x0;
}
#endif

static word open(const char *name, word flags)
{
    return call(OPEN, -100ul, (word)name, flags, 0644, 0);
}

static void mount(const char *type, const char *where)
{
    call(MKDIR, -100ul, (word)where, 0755, 0, 0);
    call(MOUNT, (word)type, (word)where, (word)type, 0, 0);
}

/* The host stops at both. */
__attribute__((noinline)) void ask(void)
{
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void answer(void)
{
    __asm__ volatile("" ::: "memory");
}

/* All of a file, into box.data. */
static word read_file(const char *name)
{
    word file = open(name, 0), size = 0, got;
    if ((long)file < 0)
        return file;
    while ((got = call(READ, file, (word)box.data + size, sizeof box.data - size, 0, 0)) && (long)got > 0)
        size += got;
    call(CLOSE, file, 0, 0, 0, 0);
    return (long)got < 0 ? got : size;
}

static word write_file(const char *name, const char *text, word size)
{
    word file = open(name, 1), done;
    if ((long)file < 0)
        return file;
    done = call(WRITE, file, (word)text, size, 0, 0);
    call(CLOSE, file, 0, 0, 0, 0);
    return done;
}

/* Opens a file `count` times, each time reading 37 bytes of it, and then the end of an empty one. */
static word work(word count)
{
    word sum = 0;
    for (word n = 0; n < count; n++) {
        word file = open("/greeting", 0);
        sum += call(READ, file, (word)box.data, 37, 0, 0);
        sum += call(READ, file, (word)box.data, 1000, 0, 0);
        call(CLOSE, file, 0, 0, 0, 0);
    }
    return sum;
}

/* Reads the end of a file `count` times. */
static word reads(word count)
{
    word file = open("/greeting", 0), sum = 0;
    call(READ, file, (word)box.data, 1000, 0, 0);
    for (word n = 0; n < count; n++)
        sum += call(READ, file, (word)box.data, 1, 0, 0);
    call(CLOSE, file, 0, 0, 0, 0);
    return sum;
}

static void use(word cpus)
{
    call(SET_AFFINITY, 0, sizeof cpus, (word)&cpus, 0, 0);
}

/* Opens a file, and then two processes work at once, each on a CPU of its own. */
static word both(word count)
{
    word sum, child;
    call(CLOSE, open("/greeting", 0), 0, 0, 0, 0);
    child = call(CLONE, 17, 0, 0, 0, 0);
    use(child ? 1 : 2);
    sum = work(count);
    if (!child)
        call(EXIT, 0, 0, 0, 0, 0);
    call(WAIT, child, 0, 0, 0, 0);
    use(3);
    return sum;
}

static word insert(const char *name)
{
    word file = open(name, 0), result;
    if ((long)file < 0)
        return file;
    result = call(INSERT_MODULE, file, (word) "", 0, 0, 0);
    call(CLOSE, file, 0, 0, 0, 0);
    return result;
}

void begin(void)
{
    mount("proc", "/proc");
    mount("tracefs", "/tracing");
    for (;;) {
        *(volatile word *)&box.what = 0; /* the page is there */
        ask();
        switch (box.what) {
        case READ_FILE: box.result = read_file(box.name); break;
        case WRITE_FILE: box.result = write_file(box.name, box.text, box.count); break;
        case WORK: box.result = work(box.count); break;
        case READS: box.result = reads(box.count); break;
        case BOTH: box.result = both(box.count); break;
        case INSERT: box.result = insert(box.name); break;
        case REMOVE: box.result = call(REMOVE_MODULE, (word)box.name, 0, 0, 0, 0); break;
        }
        answer();
    }
}

__attribute__((naked)) void _start(void)
{
#if defined(__x86_64__)
    __asm__("xor %ebp, %ebp\n\tand $-16, %rsp\n\tcall begin");
#else
    __asm__("bl begin");
#endif
}
