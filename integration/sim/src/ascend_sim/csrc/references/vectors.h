// Eight floats at a time, in whatever vector width the including file has turned on. Included once per width, inside a
// namespace.

typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));
typedef uint32_t Words __attribute__((vector_size(32)));
typedef uint16_t Shorts __attribute__((vector_size(16)));
typedef int8_t Bytes __attribute__((vector_size(8)));
constexpr int64_t kLanes = 8;

template <typename To, typename From>
inline To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}

inline Words load_shorts(const void* from) {
  Shorts shorts;
  __builtin_memcpy(&shorts, from, sizeof shorts);
  return __builtin_convertvector(shorts, Words);
}

inline Floats load(const float* from) {
  Floats result;
  __builtin_memcpy(&result, from, sizeof result);
  return result;
}

inline Floats load(const c10::BFloat16* from) { return bits<Floats>(load_shorts(from) << 16); }

// Exponent and mantissa moved to their place and scaled by the difference of the biases, which also turns subnormal
// numbers into normal ones; infinities and NaNs get the largest exponent.
inline Floats load(const c10::Half* from) {
  const Words half = load_shorts(from), magnitude = (half & 0x7fff) << 13;
  const Words special = bits<Words>(magnitude >= (0x7cu << 21)) & 0x7f800000u;
  return bits<Floats>((half & 0x8000) << 16 | bits<Words>(bits<Floats>(magnitude) * 0x1p112f) | special);
}

inline void store(float* to, Floats value) { __builtin_memcpy(to, &value, sizeof value); }

// Half to even: adding 0x7fff, or 0x8000 if the last kept bit is 1, carries where rounding goes up.
inline void store(c10::BFloat16* to, Floats value) {
  const Words word = bits<Words>(value), rounded = (word + 0x7fff + (word >> 16 & 1)) >> 16;
  const Shorts shorts = __builtin_convertvector(value == value ? rounded : Words{} + 0x7fc0, Shorts);
  __builtin_memcpy(to, &shorts, sizeof shorts);
}

inline void store(c10::Half* to, Floats value) {
  for (int64_t i = 0; i < kLanes; i++) to[i] = static_cast<c10::Half>(value[i]);
}

inline float sum(Floats value) {
  value += __builtin_shuffle(value, Ints{4, 5, 6, 7, 0, 1, 2, 3});
  value += __builtin_shuffle(value, Ints{2, 3, 0, 1, 6, 7, 4, 5});
  return value[0] + value[1];
}

// exp(x) for x <= 0 to about two units in the last place: 2^n exp(r) with |r| <= log(2) / 2, below -87 zero.
inline Floats exponential(Floats x) {
  const Floats scaled = x * 1.44269504f;
  const Floats n = __builtin_convertvector(__builtin_convertvector(scaled - 0.5f, Ints), Floats);
  const Floats r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  Floats p = 1.98412698e-4f * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  const Words power = bits<Words>((__builtin_convertvector(n, Ints) + 127) << 23);
  return bits<Floats>(bits<Words>(p * bits<Floats>(power)) & bits<Words>(x > -87.0f));
}
