/* CartPole-v1 for many environments, in float32, one after the other: Barto, Sutton and Anderson
 * 1983 by Euler's method, as Gymnasium has it. An episode that ends is begun anew in the same step. */

#include <math.h>
#include <stdint.h>

static const float MOST_X = 2.4f, MOST_THETA = 0.20943951f; /* 12 degrees */
static const int32_t MOST_STEPS = 500;

typedef struct {
    int64_t n;
    uint64_t random;     /* xorshift64, Marsaglia 2003; never 0 */
    float *obs;          /* [n][4], the state itself: x and theta, each with its speed after it */
    uint8_t *terminated; /* [n], as those below */
    uint8_t *truncated;
    int32_t *steps;      /* of the episode that is running */
} Envs;

static void begin(Envs *envs, int64_t e)
{
    for (int i = 0; i < 4; i++) {
        uint64_t x = envs->random;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        envs->random = x;
        envs->obs[4 * e + i] = (float)(x >> 40) * (0.1f / (1 << 24)) - 0.05f;
    }
    envs->steps[e] = 0;
}

void reset(Envs *envs)
{
    for (int64_t e = 0; e < envs->n; e++)
        begin(envs, e);
}

/* `actions`: [n], 1 pushes to the right. */
void step(Envs *envs, const int64_t *actions)
{
    for (int64_t e = 0; e < envs->n; e++) {
        float *s = envs->obs + 4 * e;
        float sine = sinf(s[2]), cosine = cosf(s[2]);
        float force = actions[e] == 1 ? 10.0f : -10.0f;
        float pushed = (force + 0.05f * s[3] * s[3] * sine) / 1.1f;
        float theta_acc = (9.8f * sine - cosine * pushed)
                          / (0.5f * (4.0f / 3.0f - 0.1f * cosine * cosine / 1.1f));
        float x_acc = pushed - 0.05f * theta_acc * cosine / 1.1f;
        s[0] += 0.02f * s[1];
        s[1] += 0.02f * x_acc;
        s[2] += 0.02f * s[3];
        s[3] += 0.02f * theta_acc;
        uint8_t over = fabsf(s[0]) > MOST_X || fabsf(s[2]) > MOST_THETA;
        uint8_t late = ++envs->steps[e] >= MOST_STEPS;
        envs->terminated[e] = over;
        envs->truncated[e] = late;
        if (over || late)
            begin(envs, e);
    }
}
