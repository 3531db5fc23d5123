/* Threads that call one function at once: each call has its own arguments, and its own result. Exit status 7 where all
   results were right. */
#include <pthread.h>

#define THREADS 3
#define ROUNDS 60

__attribute__((noinline)) long work(long number, long round)
{
    __asm__ volatile("" : "+r"(number));
    return number * 1000 + round;
}

static void *run(void *argument)
{
    long sum = 0;
    for (long round = 0; round < ROUNDS; round++)
        sum += work((long)argument, round);
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0;
    for (long number = 0; number < THREADS; number++)
        pthread_create(&threads[number], 0, run, (void *)(number + 1));
    for (int number = 0; number < THREADS; number++) {
        void *result;
        pthread_join(threads[number], &result);
        sum += (long)result;
    }
    return sum == (1 + 2 + 3) * 1000L * ROUNDS + THREADS * (ROUNDS * (ROUNDS - 1L) / 2) ? 7 : 1;
}
