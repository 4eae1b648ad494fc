/* A replay buffer of float32 columns: what is pushed is copied, rows are drawn uniformly. */

#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t capacity, at, obs_dim;
    uint64_t random; /* xorshift64, Marsaglia 2003; never 0 */
    float *obs;      /* [capacity][obs_dim], as next_obs */
    float *next_obs;
    float *action;   /* [capacity], as those below */
    float *reward;
    uint8_t *terminated;
    uint8_t *truncated;
} Ring;

void push(Ring *ring, const float *obs, const float *next_obs, const float *action, float reward,
          uint8_t terminated, uint8_t truncated)
{
    int64_t at = ring->at;
    size_t row = (size_t)ring->obs_dim * sizeof(float);
    memcpy(ring->obs + at * ring->obs_dim, obs, row);
    memcpy(ring->next_obs + at * ring->obs_dim, next_obs, row);
    ring->action[at] = *action;
    ring->reward[at] = reward;
    ring->terminated[at] = terminated;
    ring->truncated[at] = truncated;
    ring->at = at + 1 == ring->capacity ? 0 : at + 1;
}

/* `n` rows into `out`, whose columns are as those of a ring of `n`. */
void sample(Ring *ring, int64_t n, Ring *out)
{
    size_t row = (size_t)ring->obs_dim * sizeof(float);
    for (int64_t i = 0; i < n; i++) {
        uint64_t x = ring->random;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        ring->random = x;
        int64_t from = (int64_t)(((unsigned __int128)x * (uint64_t)ring->capacity) >> 64);
        memcpy(out->obs + i * ring->obs_dim, ring->obs + from * ring->obs_dim, row);
        memcpy(out->next_obs + i * ring->obs_dim, ring->next_obs + from * ring->obs_dim, row);
        out->action[i] = ring->action[from];
        out->reward[i] = ring->reward[from];
        out->terminated[i] = ring->terminated[from];
        out->truncated[i] = ring->truncated[from];
    }
}
