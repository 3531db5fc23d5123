/* A second thread that stops for something else than a probe: a signal, or the end of the process. Exit status 7. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile int handled;

__attribute__((noinline)) int work(int number)
{
    return number + handled;
}

static void handle(int number)
{
    handled++;
}

static void *run(void *what)
{
    if (!strcmp(what, "signals"))
        for (int n = 0; n < 5; n++)
            raise(SIGUSR1);
    if (!strcmp(what, "exit"))
        exit(7);
    if (!strcmp(what, "work"))
        work(1);
    return what;
}

int main(int count, char **words)
{
    pthread_t thread;
    void *result;
    signal(SIGUSR1, handle);
    pthread_create(&thread, 0, run, words[1]);
    pthread_join(thread, &result);
    return work(2) - 2 == (strcmp(words[1], "signals") ? 0 : 5) ? 7 : 1;
}
