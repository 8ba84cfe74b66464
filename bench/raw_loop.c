// The limit: mj_step in a plain C loop, one mjData a thread, each world's whole segment at once.

#include <pthread.h>
#include <mujoco/mujoco.h>

typedef struct {
  const mjModel* model;
  int first, last, steps;
  mjtNum* state;          // (n, integration state): where each world starts, and then where it ends
  const mjtNum* control;  // (n, steps, nu)
  int warnings;
} Share;

static void* run(void* argument) {
  Share* s = argument;
  mjData* d = mj_makeData(s->model);
  int size = mj_stateSize(s->model, mjSTATE_INTEGRATION), nu = s->model->nu;
  for (int i = s->first; i < s->last; i++) {
    mjtNum* state = s->state + (size_t)i * size;
    const mjtNum* control = s->control + (size_t)i * s->steps * nu;
    mj_setState(s->model, d, state, mjSTATE_INTEGRATION);
    for (int k = 0; k < s->steps; k++) {
      mju_copy(d->ctrl, control + (size_t)k * nu, nu);
      mj_step(s->model, d);
    }
    mj_getState(s->model, d, state, mjSTATE_INTEGRATION);
  }
  for (int w = 0; w < mjNWARNING; w++) s->warnings += d->warning[w].number;
  mj_deleteData(d);
  return NULL;
}

// Step n worlds on two threads; returns the number of warnings.
int raw_loop(const mjModel* model, int n, int steps, mjtNum* state, const mjtNum* control) {
  Share halves[2] = {{model, 0, n / 2, steps, state, control, 0}, {model, n / 2, n, steps, state, control, 0}};
  pthread_t other;
  if (pthread_create(&other, NULL, run, &halves[1])) return -1;
  run(&halves[0]);
  pthread_join(other, NULL);
  return halves[0].warnings + halves[1].warnings;
}
