// Rows of norms and activations. Included once per vector width, inside a namespace.

// y = x / sqrt(mean(x^2) + epsilon) * gamma, with x = rounded(x + residual) written to `sum` if there is a residual.
// Returns 1 / sqrt(...).
template <typename T>
float rms_norm(const T* x, const T* residual, T* sum_out, const float* gamma, float epsilon, int64_t size, T* y) {
  if (residual) {
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) store(sum_out + i, load(x + i) + load(residual + i));
    for (; i < size; i++) sum_out[i] = static_cast<T>(static_cast<float>(x[i]) + static_cast<float>(residual[i]));
    x = sum_out;
  }
  Floats squares = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Floats values = load(x + i);
    squares += values * values;
  }
  float total = sum(squares);
  for (; i < size; i++) total += static_cast<float>(x[i]) * static_cast<float>(x[i]);
  const float rstd = 1 / std::sqrt(total / static_cast<float>(size) + epsilon);
  for (i = 0; i + kLanes <= size; i += kLanes) store(y + i, load(x + i) * rstd * load(gamma + i));
  for (; i < size; i++) y[i] = static_cast<T>(static_cast<float>(x[i]) * rstd * gamma[i]);
  return rstd;
}

// y = gate * sigmoid(gate) * up
template <typename T>
void swiglu(const T* gate, const T* up, int64_t size, T* y) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Floats a = load(gate + i), e = exponential(a > 0 ? -a : a);
    store(y + i, a * (a > 0 ? Floats{} + 1.0f : e) / (1.0f + e) * load(up + i));
  }
  for (; i < size; i++) {
    const float a = static_cast<float>(gate[i]);
    y[i] = static_cast<T>(a / (1 + std::exp(-a)) * static_cast<float>(up[i]));
  }
}

// y = round(x / scale), half to even, with scale = max(|x|) / 127, which is returned. Zeros give zeros; a NaN makes the
// scale NaN, and y of NaN is 0, as torch has it.
template <typename T>
float quantize(const T* x, int64_t size, int8_t* y) {
  Floats largest = {};
  Ints numbers = ~Ints{};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Floats value = load(x + i), magnitude = value < 0 ? -value : value;
    largest = magnitude > largest ? magnitude : largest;
    numbers &= value == value;
  }
  float maximum = 0;
  bool whole = true;  // no NaN
  for (int64_t lane = 0; lane < kLanes; lane++) {
    maximum = std::max(maximum, largest[lane]);
    whole &= numbers[lane] != 0;
  }
  for (; i < size; i++) {
    const float magnitude = std::fabs(static_cast<float>(x[i]));
    maximum = std::max(maximum, magnitude);
    whole &= magnitude == magnitude;
  }
  if (!whole) maximum = std::numeric_limits<float>::quiet_NaN();
  const float scale = maximum / 127, divisor = scale == 0 ? 1 : scale;
  for (i = 0; i + kLanes <= size; i += kLanes) {
    const Floats quotient = load(x + i) / divisor;
    const Floats rounded = (quotient + 0x1.8p23f) - 0x1.8p23f;  // of at most 127: the sum keeps no fraction
    const auto bytes = __builtin_convertvector(__builtin_convertvector(rounded == rounded ? rounded : Floats{}, Ints), Bytes);
    __builtin_memcpy(y + i, &bytes, sizeof bytes);
  }
  for (; i < size; i++) {
    const float quotient = static_cast<float>(x[i]) / divisor;
    y[i] = quotient == quotient ? static_cast<int8_t>(std::nearbyint(quotient)) : int8_t{0};
  }
  return scale;
}
