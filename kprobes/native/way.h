/* How the return address of a guest's calls is replaced and compared (sites.c), for hits.c. */
#ifndef KPROBES_WAY_H
#define KPROBES_WAY_H
#include "words.h"

/*   show     at a function's entry: put the trampoline's address in the place of the return
 *            address. 0: that is not `calls->target` any more, and nothing was done
 *   unmoved  at the trampoline: 1 if the code there returns to `calls->target`
 */
struct way {
    int (*show)(struct calls *);
    int (*unmoved)(struct calls *);
};

#endif
