/* A process with children. Each calls a function of ours, returns from one that was entered before the fork, and says
   how that went by its exit status. Exit status 7 where all did, and our own calls did. "t": while another thread calls
   the function, too. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3

static volatile int over;

__attribute__((noinline)) long work(long number)
{
    __asm__ volatile("" : "+r"(number));
    return number * 1000 + 7;
}

__attribute__((noinline)) int divide(void)
{
    int child = fork();
    __asm__ volatile("" : "+r"(child));
    return child;
}

__attribute__((noinline)) int family(long number)
{
    int status, child = divide();
    if (child == 0)
        return work(number) == number * 1000 + 7 ? 10 + number : 1;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return WIFSIGNALED(status) ? 100 + WTERMSIG(status) : 2;
    return work(WEXITSTATUS(status)) == WEXITSTATUS(status) * 1000 + 7 ? WEXITSTATUS(status) : 3;
}

static void *beside(void *argument)
{
    long number = 0;
    while (!over)
        number += work(50) != 50007;
    return (void *)number;
}

int main(int argc, char **argv)
{
    int parent = getpid(), result = 7;
    pthread_t thread;
    void *wrong = 0;
    if (argc > 1)
        pthread_create(&thread, 0, beside, 0);
    for (long number = 0; number < CHILDREN; number++) {
        int status = family(number);
        if (getpid() != parent)
            _exit(status);
        if (status != 10 + number)
            result = status;
    }
    over = 1;
    if (argc > 1)
        pthread_join(thread, &wrong);
    return wrong ? 4 : result;
}
