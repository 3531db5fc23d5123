/* Hooks of the engine's that read registers without the engine's Python binding: see yardsticks.py.
 *
 * No header of Python's is needed: the functions of its C API come in `about`. */

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct about {
    int (*read_register)(void *engine, int number, void *value);
    int (*read_memory)(void *engine, uint64_t address, void *value, size_t size);
    int (*ensure)(void);         /* PyGILState_Ensure */
    void (*release)(int state);  /* PyGILState_Release */
    void *(*call)(void *function, void *const *arguments, size_t count, void *names); /* PyObject_Vectorcall */
    void *(*number)(unsigned long long value);                                        /* PyLong_FromUnsignedLongLong */
    void (*forget)(void *object);                                                     /* Py_DecRef */
    void *handler;  /* a function of Python's */
    int first;      /* number of the first argument's register; of the stack pointer where arguments are on the stack */
    int second;     /* number of the second argument's register; -1: they are on the stack */
    int stack;      /* number of the stack pointer's register */
    uint64_t above; /* bytes from the stack pointer to the first argument */
    uint64_t size;  /* bytes of an argument on the stack */
    uint64_t hits;
    uint64_t seen; /* so that reading is not left out */
} about;

static void read_arguments(void *engine, uint64_t values[2])
{
    values[0] = values[1] = 0;
    about.read_register(engine, about.first, &values[0]);
    if (about.second >= 0) {
        about.read_register(engine, about.second, &values[1]);
    } else {
        uint64_t stack = values[0] + about.above;
        values[0] = 0;
        about.read_memory(engine, stack, &values[0], about.size);
        about.read_memory(engine, stack + about.size, &values[1], about.size);
    }
}

/* In C alone. */
void c_empty(void *engine, uint64_t address, uint32_t size, void *data)
{
    about.hits++;
}

/* Counts as programs for several processors do. */
void c_atomic(void *engine, uint64_t address, uint32_t size, void *data)
{
    __atomic_fetch_add(&about.hits, 1, __ATOMIC_SEQ_CST);
}

void c_two(void *engine, uint64_t address, uint32_t size, void *data)
{
    uint64_t values[2];
    read_arguments(engine, values);
    about.seen += values[0] + values[1];
    about.hits++;
}

/* What compiled programs do, by hand: one count; a record of two arguments and the stack pointer, if the second argument
 * is large enough; a histogram of the time from entry to return, by the power of two. */
static uint64_t records[1 << 12][3], next_record, histogram[64];
static struct { uint64_t frame, time; } calls[1 << 10];

void c_record(void *engine, uint64_t address, uint32_t size, void *data)
{
    uint64_t values[2], stack = 0;
    about.hits++;
    read_arguments(engine, values);
    if (values[1] < 5)
        return;
    about.read_register(engine, about.stack, &stack);
    uint64_t *record = records[next_record++ % (1 << 12)];
    record[0] = values[0];
    record[1] = values[1];
    record[2] = stack;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

void c_entered(void *engine, uint64_t address, uint32_t size, void *data)
{
    uint64_t stack = 0;
    about.read_register(engine, about.stack, &stack);
    unsigned place = stack >> 3 & 1023;
    calls[place].frame = stack;
    calls[place].time = now();
}

void c_returning(void *engine, uint64_t address, uint32_t size, void *data)
{
    uint64_t stack = 0;
    about.read_register(engine, about.stack, &stack);
    unsigned place = stack >> 3 & 1023;
    if (calls[place].frame == stack) {
        histogram[63 - __builtin_clzll((now() - calls[place].time) | 1)]++;
        calls[place].frame = 0;
    }
    about.hits++;
}

/* A function of Python's, called through the C API: without arguments, or with both. */
static void call(void *const *arguments, size_t count)
{
    void *result = about.call(about.handler, arguments, count, NULL);
    if (result)
        about.forget(result);
    about.hits += result != NULL;
}

void api_empty(void *engine, uint64_t address, uint32_t size, void *data)
{
    int state = about.ensure();
    call(NULL, 0);
    about.release(state);
}

void api_two(void *engine, uint64_t address, uint32_t size, void *data)
{
    uint64_t values[2];
    void *numbers[2];
    int state = about.ensure();
    read_arguments(engine, values);
    numbers[0] = about.number(values[0]);
    numbers[1] = about.number(values[1]);
    call(numbers, 2);
    about.forget(numbers[0]);
    about.forget(numbers[1]);
    about.release(state);
}
