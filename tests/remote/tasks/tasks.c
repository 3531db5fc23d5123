/* A process that says its pid and the tid of each thread, before seen(n) is called: n 0 in the first thread, 2 and 3 in
   a second one, 4 in the first again. The second thread is there with an argument only. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
__attribute__((noinline)) long told(long what) { return what ? syscall(SYS_gettid) : getpid(); }
__attribute__((noinline)) void seen(long n) { __asm__ volatile("" :: "r"(n) : "memory"); }
static void *other(void *n) {
    printf("%d %ld\n", getpid(), (long)syscall(SYS_gettid));
    fflush(stdout);
    seen(2);
    seen(3);
    return 0;
}
int main(int argc, char **argv) {
    pthread_t thread;
    printf("%d %ld\n", getpid(), (long)syscall(SYS_gettid));
    fflush(stdout);
    seen(0);
    if (argc == 1) return 0;
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    seen(4);
    return 0;
}
