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
