/* How a guest's calls leave the return address, for who serves a hit in C (hits.c). */
#ifndef KPROBES_WAY_H
#define KPROBES_WAY_H
#include "words.h"

/*   show     at a function's entry: put the trampoline where the return address is. 0, and nothing done: it is another
 *            one than `calls->target` by now
 *   unmoved  at the trampoline: 1 if the code there returns to `calls->target`
 */
struct way {
    int (*show)(struct calls *);
    int (*unmoved)(struct calls *);
};

#endif
