// Left-balanced k-d trees after Wald 2022, and the stack-free walk of his companion paper, for the nearest point and with a short
// sorted list for k. For kauri's suite `kdtree`.
// Build: nvcc -O3 -std=c++17 -arch=native --extended-lambda -o kdtree_wald kdtree_wald.cu
#include "wald.cuh"

// The k best so far, in order; the distance above the id.
template <int K>
struct List {
    unsigned long long best[K];
    __device__ List() {
#pragma unroll
        for (int i = 0; i < K; i++) best[i] = 0x7F800000FFFFFFFFull;
    }
    __device__ float bound() const { return __uint_as_float(unsigned(best[K - 1] >> 32)); }
    __device__ void offer(float distance, int id) {
        unsigned long long item = (unsigned long long)(__float_as_uint(distance)) << 32 | unsigned(id);
#pragma unroll
        for (int i = 0; i < K; i++) {
            const unsigned long long other = best[i];
            if (item < other) {
                best[i] = item;
                item = other;
            }
        }
    }
};

template <int D, int K>
__global__ void nearest(const PointWithId<float, D> *points, int n, const float *queries, int *ids, float *dist2) {
    const int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    float query[D];
    for (int d = 0; d < D; d++) query[d] = queries[size_t(q) * D + d];
    List<K> list;
    int node = 0, previous = -1;
    while (node >= 0) {
        const int parent = (node + 1) / 2 - 1;
        if (node >= n) {
            previous = node;
            node = parent;
            continue;
        }
        const PointWithId<float, D> p = points[node];
        const bool from_above = previous < node;
        if (from_above) {
            float d2 = 0;
            for (int d = 0; d < D; d++) d2 += (query[d] - p.x[d]) * (query[d] - p.x[d]);
            if (d2 <= list.bound()) list.offer(d2, p.id);
        }
        const int axis = Rules::level(node) % D;
        float along = 0;
#pragma unroll
        for (int d = 0; d < D; d++) if (d == axis) along = query[d] - p.x[d];
        const int near = 2 * node + 1 + (along > 0), far = 4 * node + 3 - near;
        int next = parent;
        if (from_above) next = near;
        else if (previous == near && along * along <= list.bound()) next = far;
        previous = node;
        node = next;
    }
#pragma unroll
    for (int i = 0; i < K; i++) {
        ids[size_t(q) * K + i] = int(unsigned(list.best[i]));
        dist2[size_t(q) * K + i] = __uint_as_float(unsigned(list.best[i] >> 32));
    }
}

template <int D, int K>
void query(const std::string &input, const Array<PointWithId<float, D>> &points, const Array<float> &queries) {
    const size_t n = points.len;
    Array<int> ids(n * K);
    Array<float> dist2(n * K);
    row("Wald in CUDA", "nearest k=" + std::to_string(K), input, n, 0, [&] {
        nearest<D, K><<<(n + 127) / 128, 128>>>(points.data, int(n), queries.data, ids.data, dist2.data);
    });
}

template <int D>
void points(uint64_t seed, size_t n) {
    const std::string input = "f32 x " + std::to_string(D) + ", uniform";
    Array<float> coords(n * D), queries(n * D);
    auto uniform = [](uint64_t seed) { return [seed] __device__(size_t i) { return unit(noise(seed, i)); }; };
    make(coords, uniform(seed));
    make(queries, uniform(seed + 1));
    using P = PointWithId<float, D>;
    Array<P> points(n);
    Array<unsigned> tags(n);
    size_t temp = n * (sizeof(P) + 2 * sizeof(unsigned));
    row("Wald in CUDA", "build", input, n, temp, [&] { build<P>(coords, points, tags); });
    check_tree(points, tags, false);
    query<D, 1>(input, points, queries);
    query<D, 8>(input, points, queries);
    if (D == 3) query<D, 32>(input, points, queries);
}

int main(int argc, char **argv) {
    return for_each_size(argc, argv, [](uint64_t seed, size_t n) {
        points<3>(seed, n);
        points<2>(seed, n);
        points<4>(seed, n);
    });
}
