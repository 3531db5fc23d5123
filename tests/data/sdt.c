/* Static tracepoints as sys/sdt.h describes them, by macros of our own: see build_sdt.py. */

#define TEXT(x) #x
#define SHOWN(x) TEXT(x)
#if __SIZEOF_POINTER__ == 8
#define WORD ".8byte"
#define POINTER "8"
#else
#define WORD ".4byte"
#define POINTER "4"
#endif
#if defined(__powerpc__) || defined(__powerpc64__)
#define CONSTANT "i"
#else
#define CONSTANT ""
#endif

/* What a tool that looks counts up, so that the program knows that somebody does. */
__attribute__((section(".probes"), used)) volatile unsigned short busy_semaphore;

#define MARK(provider, name, semaphore, arguments, ...)                                                               \
    __asm__ volatile("1: nop\n"                                                                                       \
                     ".pushsection .note.stapsdt,\"\",%%note\n"                                                       \
                     ".balign 4\n"                                                                                    \
                     ".4byte 3f-2f, 5f-4f, 3\n"                                                                       \
                     "2: .asciz \"stapsdt\"\n"                                                                        \
                     "3: .balign 4\n"                                                                                 \
                     "4: " WORD " 1b\n"                                                                               \
                     WORD " _.stapsdt.base\n"                                                                         \
                     WORD " " semaphore "\n"                                                                          \
                     ".asciz \"" provider "\"\n"                                                                      \
                     ".asciz \"" name "\"\n"                                                                          \
                     ".asciz \"" arguments "\"\n"                                                                     \
                     "5: .balign 4\n"                                                                                 \
                     ".popsection\n"                                                                                  \
                     ".pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n"                            \
                     ".ifndef _.stapsdt.base\n"                                                                       \
                     ".weak _.stapsdt.base\n"                                                                         \
                     ".hidden _.stapsdt.base\n"                                                                       \
                     "_.stapsdt.base: .space 1\n"                                                                     \
                     ".endif\n"                                                                                       \
                     ".popsection\n" ::__VA_ARGS__)

struct entry {
    int before;
    short number;
    const char *name;
};
struct entry the_entry = {1, -7, "width"};
volatile int looked;

/* Two places of one marker: their operands differ. */
__attribute__((noinline)) int work(int n, const char *text, struct entry *e) {
    unsigned char small = (unsigned char)n;
    MARK("lab", "work", "0", "-4@%[n] " POINTER "@%[text] -2@%[number] 1@%[small]", [n] "r"(n), [text] "r"(text),
         [number] "m"(e->number), [small] "r"(small));
    if (busy_semaphore) {
        looked += busy_semaphore;
        MARK("lab", "busy", "busy_semaphore", "4@%[looked]", [looked] "m"(looked));
    }
    MARK("lab", "work", "0", "-4@" CONSTANT "%c[n] " POINTER "@%[text] -2@%[number] 1@" CONSTANT "%c[small]", [n] "n"(-5),
         [text] "m"(e->name), [number] "r"((int)e->number), [small] "n"(9));
    MARK("lab", "none", "0", "");
    return n + e->number;
}

int call(int n) { return work(n, "height", &the_entry); }

void _start(void) { call(1); }
