// n steps of the sun and four planets under gravity, by the leapfrog rule.
#include "kernel.h"

#define BODIES 5
#define PI 3.141592653589793
#define SOLAR_MASS (4 * PI * PI)
#define YEAR 365.24

typedef struct {
  f64 x, y, z, vx, vy, vz, mass;
} body;

static const body start[BODIES] = {
    {0, 0, 0, 0, 0, 0, SOLAR_MASS},
    {4.84143144246472090, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694 * YEAR,
     0.00769901118419740425 * YEAR, -0.0000690460016972063023 * YEAR, 0.000954791938424326609 * SOLAR_MASS},
    {8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411904 * YEAR,
     0.00499852801234917238 * YEAR, 0.0000230417297573763929 * YEAR, 0.000285885980666130812 * SOLAR_MASS},
    {12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618 * YEAR,
     0.00237847173959480950 * YEAR, -0.0000296589568540237556 * YEAR, 0.0000436624404335156298 * SOLAR_MASS},
    {15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322 * YEAR,
     0.00162824170038242295 * YEAR, -0.0000951592254519715870 * YEAR, 0.0000515138902046611451 * SOLAR_MASS},
};

static body bodies[BODIES];

static void rest_the_sun(void) {
  f64 px = 0, py = 0, pz = 0;
  for (i32 i = 0; i < BODIES; i++) {
    px += bodies[i].vx * bodies[i].mass;
    py += bodies[i].vy * bodies[i].mass;
    pz += bodies[i].vz * bodies[i].mass;
  }
  bodies[0].vx = -px / SOLAR_MASS;
  bodies[0].vy = -py / SOLAR_MASS;
  bodies[0].vz = -pz / SOLAR_MASS;
}

static void advance(f64 dt) {
  for (i32 i = 0; i < BODIES; i++) {
    body *p = &bodies[i];
    for (i32 j = i + 1; j < BODIES; j++) {
      body *q = &bodies[j];
      f64 dx = p->x - q->x, dy = p->y - q->y, dz = p->z - q->z;
      f64 square = dx * dx + dy * dy + dz * dz;
      f64 pull = dt / (square * __builtin_sqrt(square));
      p->vx -= dx * q->mass * pull;
      p->vy -= dy * q->mass * pull;
      p->vz -= dz * q->mass * pull;
      q->vx += dx * p->mass * pull;
      q->vy += dy * p->mass * pull;
      q->vz += dz * p->mass * pull;
    }
  }
  for (i32 i = 0; i < BODIES; i++) {
    body *p = &bodies[i];
    p->x += dt * p->vx;
    p->y += dt * p->vy;
    p->z += dt * p->vz;
  }
}

static f64 energy(void) {
  f64 e = 0;
  for (i32 i = 0; i < BODIES; i++) {
    const body *p = &bodies[i];
    e += 0.5 * p->mass * (p->vx * p->vx + p->vy * p->vy + p->vz * p->vz);
    for (i32 j = i + 1; j < BODIES; j++) {
      const body *q = &bodies[j];
      f64 dx = p->x - q->x, dy = p->y - q->y, dz = p->z - q->z;
      e -= p->mass * q->mass / __builtin_sqrt(dx * dx + dy * dy + dz * dz);
    }
  }
  return e;
}

i64 run(i32 n) {
  for (i32 i = 0; i < BODIES; i++) {
    bodies[i] = start[i];
  }
  rest_the_sun();
  for (i32 i = 0; i < n; i++) {
    advance(0.01);
  }
  return (i64)bits(energy());
}
