char text[100];
__attribute__((noinline)) int length(const char *s)
{
    int n = 0;
    while (s[n])
        n++;
    return n;
}
__attribute__((noinline)) int find(const char *s, char c)
{
    for (; *s; s++)
        if (*s == c)
            return 1;
    return 0;
}
static int twice(int x)
{
    return x * 2;
}
__attribute__((noinline)) int work(int n)
{
    int r = 0;
    while (n > 0) {
        r += twice(n);
        if (n % 3 == 0)
            r -= 1;
        n--;
    }
    return r;
}
int main(void)
{
    for (int i = 0; i < 40; i++)
        text[i] = 'a' + i % 26;
    int r = length(text) + find(text, 'q') + find(text, '!');
    r += work(20);
    switch (r & 3) {
    case 0:
        r++;
        break;
    case 1:
        r--;
        break;
    default:
        r += 5;
    }
    return r == 99999;
}
