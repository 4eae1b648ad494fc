/* What a machine can do at most: multiply-adds, exponentials, copies, clock cycles. WIDTH is the size
 * of a register in bytes, REGISTERS how many sums are kept in registers at once. */

#include <stdint.h>
#include <string.h>

typedef float Floats __attribute__((vector_size(WIDTH)));
typedef int32_t Ints __attribute__((vector_size(WIDTH)));
enum { LANES = WIDTH / sizeof(float) };

/* `n` times as many multiply-adds as REGISTERS hold floats, none of which waits for the one before.
 * Returns their sum, so that none is left out. */
float multiply_adds(int64_t n, float by, float plus)
{
    Floats sums[REGISTERS];
    for (int r = 0; r < REGISTERS; r++)
        sums[r] = (Floats){0} + (float)r;
    for (int64_t i = 0; i < n; i++)
        for (int r = 0; r < REGISTERS; r++)
            sums[r] = sums[r] * by + plus;
    float total = 0;
    for (int r = 0; r < REGISTERS; r++)
        for (int lane = 0; lane < (int)LANES; lane++)
            total += sums[r][lane];
    return total;
}

/* e^x for |x| < 87: 2^k e^r with r between -ln(2)/2 and ln(2)/2, and e^r by its Taylor polynomial
 * of degree 6, which is within 2e-7. */
static inline Floats exponential(Floats x)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: a sum with it is rounded to a whole number */
    Floats shifted = x * 1.44269504f + round;
    Floats k = shifted - round;
    Floats r = x - k * 0.693145752f - k * 1.42860677e-6f;
    Floats p = r * (1.0f / 720) + (1.0f / 120);
    p = p * r + (1.0f / 24);
    p = p * r + (1.0f / 6);
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return (Floats)((Ints)p + ((Ints)shifted << 23)); /* adds k to the exponent */
}

/* `n` exponentials, a whole number of registers, `times` over. The arrays are aligned to WIDTH. */
void exponentials(const float *from, float *to, int64_t n, int64_t times)
{
    const Floats *x = (const Floats *)from;
    Floats *y = (Floats *)to;
    for (int64_t t = 0; t < times; t++) {
        for (int64_t i = 0; i < n / LANES; i++)
            y[i] = exponential(x[i]);
        __asm__ volatile("" : : "r"(y) : "memory"); /* each time counts */
    }
}

/* Copies `n` floats `times` over, as the C library does it: large ones past the caches. */
void copy(const float *from, float *to, int64_t n, int64_t times)
{
    for (int64_t t = 0; t < times; t++) {
        memcpy(to, from, (size_t)n * sizeof(float));
        __asm__ volatile("" : : "r"(to) : "memory");
    }
}

/* `n` additions, each of which needs the one before, so that each takes a cycle. What is added stands in
 * a register: some processors add constants without taking time for it. */
int64_t cycles(int64_t n)
{
    int64_t sum = 0, three = 3;
    __asm__ volatile("" : "+r"(three));
    for (int64_t i = 0; i < n / 8; i++) {
#define ADD sum += three; __asm__ volatile("" : "+r"(sum));
        ADD ADD ADD ADD ADD ADD ADD ADD
    }
    return sum;
}
