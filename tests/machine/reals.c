/* Functions with floating-point parameters, for tests/machine/test_real_arguments.py. */
double add(double a, double b) { return a + b; }
float add_singles(float a, float b) { return a + b; }
double mixed(int a, double b, long c, float d, const char *e) { return a + b * 10 + c * 100 + d * 1000 + e[1]; }
int truncated(double a) { return (int)a; }
unsigned char byte(double a) { return (unsigned char)(int)a; }
double half(int a) { return a / 2.0; }
void store(double *to, double value) { *to = value; }
double many(double a, double b, double c, double d, double e, double f, double g, double h, double i, float j, double k)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k;
}
double crowded(int a, int b, int c, int d, int e, int f, int g, int h, int i, double j, int k, double l)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l;
}
double variable(int many, ...)
{
    __builtin_va_list list;
    double sum = 0;
    __builtin_va_start(list, many);
    for (int n = 0; n < many; n++)
        sum += __builtin_va_arg(list, double);
    __builtin_va_end(list);
    return sum;
}
long double wide(long double a) { return a; }
