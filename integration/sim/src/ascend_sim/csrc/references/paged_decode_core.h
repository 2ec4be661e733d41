// One key head of one request of paged_decode. Included once per vector width, inside a namespace.

// Scores of `Queries` queries, `size` apart, with one row.
template <int Queries, typename T>
inline void dots(const float* query, const T* row, int64_t size, float* scores, int64_t score_stride) {
  Floats totals[Queries] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const Floats values = load(row + i);
    ASCEND_SIM_UNROLL for (int q = 0; q < Queries; q++) totals[q] += load(query + q * size + i) * values;
  }
  ASCEND_SIM_UNROLL for (int q = 0; q < Queries; q++) {
    float total = sum(totals[q]);
    for (int64_t j = i; j < size; j++) total += query[q * size + j] * static_cast<float>(row[j]);
    scores[q * score_stride] = total;
  }
}

// Sums of the rows at `offsets` with the weights of `Queries` queries, `count` apart.
template <int Queries, typename T>
inline void weighted_sums(const T* rows, const int64_t* offsets, int64_t count, const float* weights, int64_t size, T* out) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Floats totals[Queries] = {};
    for (int64_t t = 0; t < count; t++) {
      const Floats values = load(rows + offsets[t] + i);
      ASCEND_SIM_UNROLL for (int q = 0; q < Queries; q++) totals[q] += weights[q * count + t] * values;
    }
    ASCEND_SIM_UNROLL for (int q = 0; q < Queries; q++)
      for (int64_t j = 0; j < kLanes; j++) out[q * size + i + j] = static_cast<T>(totals[q][j]);
  }
  for (; i < size; i++)
    for (int q = 0; q < Queries; q++) {
      float total = 0;
      for (int64_t t = 0; t < count; t++) total += weights[q * count + t] * static_cast<float>(rows[offsets[t] + i]);
      out[q * size + i] = static_cast<T>(total);
    }
}

// Turns scores into weights that sum to 1 together with the sink's; returns the log-sum-exp of the scores.
inline float softmax(float* scores, int64_t count, const float* sink) {
  float top = sink ? *sink : -INFINITY;
  for (int64_t i = 0; i < count; i++) top = std::max(top, scores[i]);
  int64_t i = 0;
  Floats totals = {};
  for (; i + kLanes <= count; i += kLanes) {
    const Floats weights = exponential(load(scores + i) - top);
    store(scores + i, weights);
    totals += weights;
  }
  float total = sum(totals);
  for (; i < count; i++) total += scores[i] = std::exp(scores[i] - top);
  const float factor = 1 / (sink ? total + std::exp(*sink - top) : total);
  for (i = 0; i < count; i++) scores[i] *= factor;
  return top + std::log(total);
}

template <int Queries, typename T>
void attend_queries(const Decode& call, const T* query, const T* keys, const T* values, const Rows& rows, const float* sink, T* out,
                    float* lse, float* scratch) {
  const int64_t count = rows.count, size = call.size;
  float *queries = scratch, *scores = scratch + Queries * size;
  for (int q = 0; q < Queries; q++)
    for (int64_t i = 0; i < size; i++) queries[q * size + i] = static_cast<float>(query[q * call.query_stride + i]) * call.scale;
  for (int64_t t = 0; t < count; t++) dots<Queries>(queries, keys + rows.keys[t], size, scores + t, count);
  for (int q = 0; q < Queries; q++) {
    const float total = softmax(scores + q * count, count, sink ? sink + q : nullptr);
    lse[q] = count ? total : INFINITY;
  }
  weighted_sums<Queries>(values, rows.values, count, scores, call.value_size, out);
}

// All queries of a key head, four at a time.
template <typename T>
void attend(const Decode& call, const T* query, const T* keys, const T* values, const Rows& rows, const float* sink, T* out, float* lse,
            float* scratch) {
  for (int64_t q = 0; q < call.fold; q += 4, query += 4 * call.query_stride, out += 4 * call.value_size, lse += 4) {
    const auto some = [&]<int Queries>() {
      attend_queries<Queries>(call, query, keys, values, rows, sink ? sink + q : nullptr, out, lse, scratch);
    };
    switch (std::min<int64_t>(4, call.fold - q)) {
      case 4: some.template operator()<4>(); break;
      case 3: some.template operator()<3>(); break;
      case 2: some.template operator()<2>(); break;
      default: some.template operator()<1>();
    }
  }
}
