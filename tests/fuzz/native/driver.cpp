// A small coverage-guided fuzzer around LLVMFuzzerTestOneInput, for compilers without libFuzzer.
//
// g++ -fsanitize-coverage=trace-pc calls __sanitizer_cov_trace_pc at every edge. A hash of the call's address sets a
// bit of a map; an input that sets a new bit is kept and mutated further. Deterministic for a seed but for addresses.
//
//   harness CORPUS_FOLDER RUNS SECONDS SEED   prints: runs, accepted, kept, edges
//   harness --once FILE                       one input, to reproduce
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kMap = 1 << 16, kLongest = 1 << 14;
constexpr unsigned kSecondsAnInput = 10;
std::uint8_t seen[kMap], now[kMap];
bool recording = false;

using Bytes = std::vector<std::uint8_t>;
Bytes current;

// The input that was running goes to a file, whatever ends the process.
void write_current() {
  const char* path = std::getenv("FUZZ_CRASH_FILE");
  std::FILE* f = std::fopen(path != nullptr ? path : "crash.bin", "wb");
  if (f == nullptr) return;
  std::fwrite(current.data(), 1, current.size(), f);
  std::fclose(f);
}

void on_signal(int number) {
  write_current();
  std::fprintf(stderr, "signal %d\n", number);
  _exit(number == SIGALRM ? 78 : 77);
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream f(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(f), {});
}

int run(const Bytes& input, bool* is_new) {
  current = input;
  std::memset(now, 0, sizeof now);
  alarm(kSecondsAnInput);
  recording = true;
  const int accepted = LLVMFuzzerTestOneInput(input.data(), input.size());
  recording = false;
  alarm(0);
  *is_new = false;
  for (std::size_t i = 0; i < kMap; ++i)
    if ((now[i] & ~seen[i]) != 0) {
      seen[i] |= now[i];
      *is_new = true;
    }
  return accepted;
}

template <typename T>
T pick(std::mt19937_64& rng, T n) { return n == 0 ? 0 : static_cast<T>(rng() % static_cast<std::uint64_t>(n)); }

void mutate(Bytes& b, const std::vector<Bytes>& corpus, std::mt19937_64& rng) {
  // The last ones are the edges of float and of double.
  static constexpr std::int64_t kEdges[] = {0, 1, -1, 2, 127, 128, 255, 256, 32767, 65535, 65536, 0x7fffffff, -0x7fffffff - 1,
                                            1ll << 32, 1ll << 40, INT64_MAX, INT64_MIN, 0x7fc00000, 0x7f800000, 0x7f7fffff,
                                            0xff7fffff, 0x7ff8ll << 48, 0x7ff0ll << 48, 0x7fefffffffffffff};
  // What moves all that follows comes less often: few such inputs are read on beyond the first array.
  static constexpr int kKinds[] = {0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 6, 6, 7, 7, 4, 5, 8};
  for (int times = 1 + static_cast<int>(pick(rng, 4)); times > 0; --times) {
    if (b.empty()) b.push_back(0);
    const std::size_t at = pick(rng, b.size());
    switch (kKinds[pick(rng, std::size(kKinds))]) {
      case 0: b[at] ^= static_cast<std::uint8_t>(1u << pick(rng, 8)); break;
      case 1: b[at] = static_cast<std::uint8_t>(rng()); break;
      case 2: {
        static constexpr std::size_t kWidths[] = {1, 2, 4, 8};
        const std::size_t width = kWidths[pick(rng, 4)];
        const std::int64_t value = kEdges[pick(rng, std::size(kEdges))];
        if (at + width <= b.size()) std::memcpy(b.data() + at, &value, width);
        break;
      }
      case 3: {  // a small step of an integer
        std::int32_t v = 0;
        if (at + sizeof v <= b.size()) {
          std::memcpy(&v, b.data() + at, sizeof v);
          v = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) + static_cast<std::uint32_t>(pick(rng, 9)) - 4u);
          std::memcpy(b.data() + at, &v, sizeof v);
        }
        break;
      }
      case 4: b.erase(b.begin() + static_cast<std::ptrdiff_t>(at), b.begin() + static_cast<std::ptrdiff_t>(std::min(b.size(), at + 1 + pick(rng, 16)))); break;
      case 5: b.insert(b.begin() + static_cast<std::ptrdiff_t>(at), 1 + pick(rng, 8), static_cast<std::uint8_t>(rng())); break;
      case 6: {
        const Bytes& other = corpus[pick(rng, corpus.size())];
        if (other.empty()) break;
        const std::size_t from = pick(rng, other.size()), n = std::min(other.size() - from, 1 + pick(rng, std::size_t{64}));
        for (std::size_t i = 0; i < n && at + i < b.size(); ++i) b[at + i] = other[from + i];
        break;
      }
      case 7: {
        const std::size_t from = pick(rng, b.size()), n = std::min(b.size() - std::max(from, at), 1 + pick(rng, std::size_t{32}));
        std::memmove(b.data() + at, b.data() + from, n);
        break;
      }
      default: b.resize(pick(rng, b.size() + 1));
    }
  }
  if (b.size() > kLongest) b.resize(kLongest);
}

}  // namespace

extern "C" __attribute__((no_sanitize("address", "undefined"), no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {
  if (!recording) return;
  const auto pc = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  now[(pc ^ (pc >> 16)) & (kMap - 1)] = 1;
}

// Called by the address sanitizer before it ends the process.
extern "C" void __asan_on_error() { write_current(); }

int main(int argc, char** argv) {
  for (const int s : {SIGSEGV, SIGABRT, SIGFPE, SIGALRM, SIGILL, SIGBUS}) std::signal(s, on_signal);
  bool is_new = false;
  if (argc == 3 && std::string(argv[1]) == "--once") {
    std::printf("accepted %d\n", run(read_file(argv[2]), &is_new));
    return 0;
  }
  if (argc != 5) {
    std::fprintf(stderr, "usage: harness CORPUS_FOLDER RUNS SECONDS SEED | harness --once FILE\n");
    return 2;
  }
  std::vector<Bytes> corpus;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  long runs = 0, accepted = 0;
  for (const auto& path : files) {
    corpus.push_back(read_file(path));
    accepted += run(corpus.back(), &is_new);
    ++runs;
  }
  if (corpus.empty()) corpus.emplace_back(16);
  const long most = std::atol(argv[2]);
  const auto stop = std::chrono::steady_clock::now() + std::chrono::seconds(std::atol(argv[3]));
  std::mt19937_64 rng(static_cast<std::uint64_t>(std::atoll(argv[4])));
  while (runs < most && std::chrono::steady_clock::now() < stop) {
    Bytes b = corpus[pick(rng, corpus.size())];
    mutate(b, corpus, rng);
    accepted += run(b, &is_new);
    ++runs;
    if (is_new) corpus.push_back(std::move(b));
  }
  long edges = 0;
  for (const std::uint8_t s : seen) edges += s;
  std::printf("{\"runs\": %ld, \"accepted\": %ld, \"kept\": %zu, \"edges\": %ld}\n", runs, accepted, corpus.size(), edges);
  return 0;
}
