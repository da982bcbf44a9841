// Left-balanced k-d trees after Wald 2022: tags, and one Thrust sort of (tag, point) by a comparator a level; levels split on
// one axis after the other, or subtrees on the widest side of their region. This is what a CUDA C++ user gets from the paper and
// the library that follows it.
#pragma once

#include "primitives.cuh"

#include <limits>

#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>

template <class T, int D>
struct Point {
    using Scalar = T;
    static constexpr int DIMS = D;
    T x[D];

    // Not by index: that would put the point into local memory.
    __host__ __device__ T at(int axis) const {
        T value = x[0];
#pragma unroll
        for (int d = 1; d < D; d++) if (d == axis) value = x[d];
        return value;
    }
};

template <class T, int D>
struct PointWithId : Point<T, D> {
    int id;
};

template <class T, int D>
__device__ void set_id(Point<T, D> &, size_t) {}
template <class T, int D>
__device__ void set_id(PointWithId<T, D> &point, size_t i) { point.id = int(i); }

// Index rules of a left-balanced tree over n points in level order, n up to 2^30.
struct Rules {
    unsigned n;
    int levels;

    __host__ __device__ explicit Rules(size_t n) : n(unsigned(n)), levels(0) {
        while ((n >> levels) != 0) levels++;
    }
    __host__ __device__ static unsigned full(int levels) { return (1u << levels) - 1; }
    __device__ static int level(unsigned s) { return 31 - __clz(int(s + 1)); }
    __device__ unsigned size(unsigned s) const {
        if (s >= n) return 0;
        const int below = levels - 1 - level(s);
        const unsigned first = ((s + 1) << below) - 1, width = 1u << below;
        const unsigned lowest = first < n ? n - first : 0;
        return width - 1 + (lowest < width ? lowest : width);
    }
    __device__ unsigned begin(unsigned s) const {
        const int l = level(s), below = levels - 1 - l;
        const unsigned left = s - full(l), most = n - full(levels - 1), lowest = left << below;
        return full(l) + left * ((1u << below) - 1) + (lowest < most ? lowest : most);
    }
    __device__ unsigned pivot(unsigned s) const { return begin(s) + size(2 * s + 1); }
};

template <class P>
__global__ void start(const typename P::Scalar *coords, P *points, size_t n) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    P p;
    for (int d = 0; d < P::DIMS; d++) p.x[d] = coords[i * P::DIMS + d];
    set_id(p, i);
    points[i] = p;
}

inline unsigned blocks_of(size_t n) { return unsigned((n + 255) / 256); }

template <class P>
auto items_of(Array<P> &points, Array<unsigned> &tags) {
    return thrust::make_zip_iterator(
        thrust::make_tuple(thrust::device_pointer_cast(tags.data), thrust::device_pointer_cast(points.data)));
}

// One axis after the other: the tag of a point is its subtree.
template <class P>
struct ByTagAndAxis {
    int axis;
    template <class A, class B>
    __host__ __device__ bool operator()(const A &a, const B &b) const {
        const unsigned tag_a = thrust::get<0>(a), tag_b = thrust::get<0>(b);
        if (tag_a != tag_b) return tag_a < tag_b;
        return static_cast<const P &>(thrust::get<1>(a)).at(axis) < static_cast<const P &>(thrust::get<1>(b)).at(axis);
    }
};

static __global__ void update(unsigned *tags, Rules rules, int level) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= rules.n || i < Rules::full(level)) return;
    const unsigned s = tags[i], pivot = rules.pivot(s);
    if (i < pivot) tags[i] = 2 * s + 1;
    else if (i > pivot) tags[i] = 2 * s + 2;
}

template <class P>
void build(const Array<typename P::Scalar> &coords, Array<P> &points, Array<unsigned> &tags) {
    const size_t n = points.len;
    const Rules rules(n);
    start<P><<<blocks_of(n), 256>>>(coords.data, points.data, n);
    CHECK(cudaMemsetAsync(tags.data, 0, n * sizeof(unsigned)));
    const auto items = items_of(points, tags);
    for (int level = 0; level < rules.levels; level++) {
        thrust::sort(thrust::device, items, items + n, ByTagAndAxis<P>{level % P::DIMS});
        if (level + 1 < rules.levels) update<<<blocks_of(n), 256>>>(tags.data, rules, level);
    }
}

template <class P>
struct Box {
    using T = typename P::Scalar;
    T low[P::DIMS], high[P::DIMS];

    static Box empty() {
        Box box;
        for (int d = 0; d < P::DIMS; d++) {
            box.low[d] = std::numeric_limits<T>::max();
            box.high[d] = std::numeric_limits<T>::lowest();
        }
        return box;
    }
    __host__ __device__ static Box of(const P &point) {
        Box box;
        for (int d = 0; d < P::DIMS; d++) box.low[d] = box.high[d] = point.x[d];
        return box;
    }
    __host__ __device__ Box joined(const Box &other) const {
        Box box = *this;
        for (int d = 0; d < P::DIMS; d++) {
            if (other.low[d] < box.low[d]) box.low[d] = other.low[d];
            if (other.high[d] > box.high[d]) box.high[d] = other.high[d];
        }
        return box;
    }
    // To the side of a plane.
    __host__ __device__ void clip(int axis, T plane, bool is_left) {
#pragma unroll
        for (int d = 0; d < P::DIMS; d++) {
            if (d != axis) continue;
            if (is_left && plane < high[d]) high[d] = plane;
            if (!is_left && plane > low[d]) low[d] = plane;
        }
    }
    // Of equal sides the one of the lower axis.
    __host__ __device__ int widest() const {
        int axis = 0;
        T most = high[0] - low[0];
#pragma unroll
        for (int d = 1; d < P::DIMS; d++) {
            const T side = high[d] - low[d];
            if (side > most) {
                axis = d;
                most = side;
            }
        }
        return axis;
    }
};

template <class P>
struct BoxOf {
    __host__ __device__ Box<P> operator()(const P &point) const { return Box<P>::of(point); }
};

template <class P>
struct Joined {
    __host__ __device__ Box<P> operator()(const Box<P> &a, const Box<P> &b) const { return a.joined(b); }
};

// The widest side: the tag of a point is its subtree, and in the low bits the axis that this splits on.
template <int D>
struct Tag {
    static constexpr int BITS = D == 1 ? 0 : D == 2 ? 1 : D <= 4 ? 2 : 3;
    __host__ __device__ static unsigned of(unsigned s, int axis) { return s << BITS | unsigned(axis); }
    __host__ __device__ static unsigned subtree(unsigned tag) { return tag >> BITS; }
    __host__ __device__ static int axis(unsigned tag) { return int(tag & ((1u << BITS) - 1)); }
};

template <class P>
struct ByTag {
    template <class A, class B>
    __host__ __device__ bool operator()(const A &a, const B &b) const {
        const unsigned tag_a = thrust::get<0>(a), tag_b = thrust::get<0>(b);
        if (tag_a != tag_b) return tag_a < tag_b;
        const int axis = Tag<P::DIMS>::axis(tag_a);
        return static_cast<const P &>(thrust::get<1>(a)).at(axis) < static_cast<const P &>(thrust::get<1>(b)).at(axis);
    }
};

// The pivot of a subtree is at its own place in the run; the ancestors before it are at their nodes, and no thread writes
// either in this round.
template <class P>
__global__ void update_widest(unsigned *tags, const P *points, Rules rules, int level, Box<P> box) {
    using Tags = Tag<P::DIMS>;
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= rules.n || i < Rules::full(level)) return;
    const unsigned tag = tags[i], s = Tags::subtree(tag), pivot = rules.pivot(s);
    if (i == pivot) return;
    const bool is_left = i < pivot;
    box.clip(Tags::axis(tag), points[pivot].at(Tags::axis(tag)), is_left);
    for (unsigned node = s; node > 0; node = (node - 1) / 2) {
        const unsigned ancestor = (node - 1) / 2;
        const int axis = Tags::axis(tags[ancestor]);
        box.clip(axis, points[ancestor].at(axis), node % 2 == 1);
    }
    tags[i] = Tags::of(is_left ? 2 * s + 1 : 2 * s + 2, box.widest());
}

template <class P>
void build_widest(const Array<typename P::Scalar> &coords, Array<P> &points, Array<unsigned> &tags) {
    const size_t n = points.len;
    const Rules rules(n);
    start<P><<<blocks_of(n), 256>>>(coords.data, points.data, n);
    const auto first = thrust::device_pointer_cast(points.data);
    const Box<P> box =
        thrust::transform_reduce(thrust::device, first, first + n, BoxOf<P>(), Box<P>::empty(), Joined<P>());
    const auto first_tag = thrust::device_pointer_cast(tags.data);
    thrust::fill(thrust::device, first_tag, first_tag + n, Tag<P::DIMS>::of(0, box.widest()));
    const auto items = items_of(points, tags);
    for (int level = 0; level < rules.levels; level++) {
        thrust::sort(thrust::device, items, items + n, ByTag<P>());
        if (level + 1 < rules.levels) {
            update_widest<P><<<blocks_of(n), 256>>>(tags.data, points.data, rules, level, box);
        }
    }
}

// Counts the points on the wrong side of an ancestor, which splits on the axis of its level or its tag.
template <class P>
__global__ void misplaced(const P *points, const unsigned *tags, size_t n, bool by_tag, unsigned long long *count) {
    const size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= n) return;
    bool is_wrong = false;
    for (unsigned node = unsigned(i); node > 0; node = (node - 1) / 2) {
        const unsigned ancestor = (node - 1) / 2;
        const int axis = by_tag ? Tag<P::DIMS>::axis(tags[ancestor]) : Rules::level(ancestor) % P::DIMS;
        const auto own = points[i].at(axis), plane = points[ancestor].at(axis);
        is_wrong |= node % 2 == 1 ? plane < own : own < plane;
    }
    if (is_wrong) atomicAdd(count, 1ull);
}

// A wrong tree ends the program: its speed is of no interest.
template <class P>
void check_tree(const Array<P> &points, const Array<unsigned> &tags, bool by_tag) {
    Array<unsigned long long> count(1);
    CHECK(cudaMemset(count.data, 0, sizeof(unsigned long long)));
    misplaced<P><<<blocks_of(points.len), 256>>>(points.data, tags.data, points.len, by_tag, count.data);
    unsigned long long wrong = 0;
    CHECK(cudaMemcpy(&wrong, count.data, sizeof(wrong), cudaMemcpyDeviceToHost));
    if (wrong != 0) {
        std::fprintf(stderr, "%llu points are on the wrong side of an ancestor\n", wrong);
        std::exit(1);
    }
}
