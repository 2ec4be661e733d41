// Inner products of rows. Included once per vector width, inside a namespace.

constexpr int64_t kTileRows = 4, kTileColumns = 3;  // their sums, a row's and the columns' values fill sixteen registers

// A row of `depth` numbers as floats, followed by zeros up to a multiple of the vector width.
template <typename T>
void widen(const T* from, int64_t depth, float* to) {
  int64_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) store(to + k, load(from + k));
  if (k == depth) return;
  store(to + k, Floats{});
  for (; k < depth; k++) to[k] = static_cast<float>(from[k]);
}

// out[r][c] = sum over k of a[r][k] b[c][k], for `depth` a multiple of the vector width; rows of a and b are `depth` apart.
// A sum does not depend on how many rows or columns are computed beside it.
template <int64_t kRows>
void tile(const float* a, const float* b, int64_t depth, float* out, int64_t out_stride) {
  Floats sums[kRows][kTileColumns] = {};
  for (int64_t k = 0; k < depth; k += kLanes) {
    const Floats columns[kTileColumns] = {load(b + k), load(b + depth + k), load(b + 2 * depth + k)};
    ASCEND_SIM_UNROLL
    for (int64_t r = 0; r < kRows; r++) {
      const Floats row = load(a + r * depth + k);
      ASCEND_SIM_UNROLL
      for (int64_t c = 0; c < kTileColumns; c++) sums[r][c] += row * columns[c];
    }
  }
  ASCEND_SIM_UNROLL
  for (int64_t r = 0; r < kRows; r++)
    ASCEND_SIM_UNROLL
    for (int64_t c = 0; c < kTileColumns; c++) out[r * out_stride + c] = sum(sums[r][c]);
}

// out [rows, columns] = a [rows, depth] b [columns, depth]^T for any number of rows and a multiple of kTileColumns.
inline void multiply(const float* a, const float* b, int64_t rows, int64_t columns, int64_t depth, float* out) {
  for (int64_t r = 0; r < rows; r += kTileRows)
    for (int64_t c = 0; c < columns; c += kTileColumns) {
      const float *a_rows = a + r * depth, *b_rows = b + c * depth;
      float* to = out + r * columns + c;
      switch (std::min(kTileRows, rows - r)) {
        case 1: tile<1>(a_rows, b_rows, depth, to, columns); break;
        case 2: tile<2>(a_rows, b_rows, depth, to, columns); break;
        case 3: tile<3>(a_rows, b_rows, depth, to, columns); break;
        default: tile<4>(a_rows, b_rows, depth, to, columns);
      }
    }
}

// out[c] = alpha * sums[c] + beta * addend[c * step], rounded once. Without an addend, alpha * sums[c].
template <typename T>
void finish_row(const float* sums, const T* addend, int64_t step, float alpha, float beta, int64_t columns, T* out) {
  if (!addend) {
    int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) store(out + c, load(sums + c) * alpha);
    for (; c < columns; c++) out[c] = static_cast<T>(sums[c] * alpha);
    return;
  }
  for (int64_t c = 0; c < columns; c++) out[c] = static_cast<T>(alpha * sums[c] + beta * static_cast<float>(addend[c * step]));
}
