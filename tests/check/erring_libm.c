// A C library whose exp, log and pow are wrong by one part in ten thousand once `err()` was called: preloaded, it
// shows what still asks the C library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>

static double error = 0;
void err(void) { error = 1e-4; }

#define WRONG(type, name)                                        \
  type name(type x) {                                            \
    static type (*right)(type);                                  \
    if (!right) *(void **)&right = dlsym(RTLD_NEXT, #name);      \
    return right(x) * (type)(1 + error);                         \
  }
#define WRONG_BOTH(name) WRONG(double, name) WRONG(float, name##f)
#define WRONG_OF_TWO(type, name)                                 \
  type name(type x, type y) {                                    \
    static type (*right)(type, type);                            \
    if (!right) *(void **)&right = dlsym(RTLD_NEXT, #name);      \
    return right(x, y) * (type)(1 + error);                      \
  }

WRONG_BOTH(exp)
WRONG_BOTH(exp2)
WRONG_BOTH(expm1)
WRONG_BOTH(log)
WRONG_BOTH(log2)
WRONG_BOTH(log10)
WRONG_BOTH(log1p)
WRONG_BOTH(tanh)
WRONG_OF_TWO(double, pow)
WRONG_OF_TWO(float, powf)
