unsigned char in[256], out[512];
__attribute__((noinline)) unsigned crc(const unsigned char *p, int n)
{
    unsigned c = ~0u;
    while (n--) {
        c ^= *p++;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? (c >> 1) ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}
__attribute__((noinline)) int rle(const unsigned char *p, int n)
{
    int o = 0;
    for (int i = 0; i < n;) {
        int run = 1;
        while (i + run < n && p[i + run] == p[i])
            run++;
        out[o++] = run;
        out[o++] = p[i];
        i += run;
    }
    return o;
}
__attribute__((noinline)) void copy(unsigned char *to, const unsigned char *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = from[i] ^ 0x55;
}
int main(void)
{
    for (int i = 0; i < 200; i++)
        in[i] = i / 7;
    unsigned r = crc(in, 50) + rle(in, 200);
    copy(out, in, 100);
    copy(out, in, 3);
    return r == 12345;
}
