#include <stdio.h>
int data[64];
__attribute__((noinline)) int sum(int n)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        s += data[i] * i;
    return s;
}
__attribute__((noinline)) void fill(int n)
{
    for (int i = 0; i < n; i++) {
        if (i & 1)
            data[i] = i;
        else
            data[i] = -i;
    }
}
__attribute__((noinline)) int four(void)
{
    int s = 1;
    for (int i = 0; i < 4; i++)
        s = s * 3 + data[i];
    return s;
}
int main(void)
{
    fill(50);
    int t = 0;
    for (int k = 0; k < 7; k++)
        t += sum(k * 9);
    t += four();
    return t == 12345;
}
