/* Asks for every common kind of relocation; tests/test_image.py knows what call(x) returns. Its other half is image_b.c. */
extern int ext(int), evar;
extern int maybe(void) __attribute__((weak)), there(int) __attribute__((weak));

static int priv = 5;
int pub = 7, *ptr = &pub, zero[64], common;
static const int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
static const char *const names[] = {"alpha", "beta"};

static __attribute__((noinline)) int helper(int x) { return x * 3 + priv; }
int (*volatile fp)(int) = helper;

__attribute__((noinline)) int pick(int x)
{
	switch (x) {
	case 0: return pub + 11;
	case 1: return ext(1);
	case 2: return priv * 77;
	case 3: return zero[9] + 3;
	case 4: return evar;
	case 5: return x ^ pub;
	case 6: return -pub;
	default: return 1000;
	}
}

int call(int x)
{
	if (maybe)
		return maybe();
	if (!there)
		return -2;
	zero[3] += x;
	common += zero[3];
	return ext(x) + evar + fp(x) + names[x & 1][x & 3] + pick(x & 7) + table[x & 7] + *ptr + zero[3] + there(x) + common;
}

int tail(int x) { return ext(x + 1); }
