// pthread_create, counted: tells which calls of the core started threads of their own.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace {
std::atomic<long> started{0};
}

extern "C" long threads_started() { return started.load(); }

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  started.fetch_add(1);
  return create(thread, attributes, start, argument);
}
