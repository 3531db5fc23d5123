struct node { struct node *next; int v; } pool[30];
__attribute__((noinline)) struct node *build(int n)
{
    struct node *head = 0;
    for (int i = 0; i < n; i++) {
        pool[i].v = i * i % 17;
        pool[i].next = head;
        head = &pool[i];
    }
    return head;
}
__attribute__((noinline)) int count(struct node *p, int limit)
{
    int found = 0;
    for (; p; p = p->next) {
        if (p->v < limit)
            continue;
        found++;
    }
    return found;
}
__attribute__((noinline)) int fact(int n)
{
    if (n < 2)
        return 1;
    return n * fact(n - 1);
}
__attribute__((noinline)) int both(int a, int b)
{
    return (a > 3 && b > 3) || a == b ? a : b;
}
int main(void)
{
    struct node *h = build(30);
    int r = 0;
    for (int i = 0; i < 6; i++)
        r += count(h, i * 3);
    r += fact(7);
    do
        r = both(r, 3) - 100;
    while (r > 1000);
    return r == 99999;
}
