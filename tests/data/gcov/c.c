#define N 8
double m[N][N], v[N], w[N];
__attribute__((noinline)) void multiply(void)
{
    for (int i = 0; i < N; i++) {
        double t = 0;
        for (int j = 0; j < N; j++)
            t += m[i][j] * v[j];
        w[i] = t;
    }
}
__attribute__((noinline)) int collatz(unsigned n)
{
    int steps = 0;
    while (n != 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}
__attribute__((noinline)) void sort(double *a, int n)
{
    for (int i = 1; i < n; i++) {
        double x = a[i];
        int j = i;
        while (j > 0 && a[j - 1] > x) {
            a[j] = a[j - 1];
            j--;
        }
        a[j] = x;
    }
}
int main(void)
{
    for (int i = 0; i < N; i++) {
        v[i] = i * 7 % 5;
        for (int j = 0; j < N; j++)
            m[i][j] = i - j;
    }
    multiply();
    sort(w, N);
    int s = 0;
    for (int i = 1; i < 10; i++)
        s += collatz(i);
    return s == 9999;
}
