// Bounding volume hierarchies of triangles in device memory: a linear build, and rays.
//
// The hierarchy is that of Karras 2012 (Maximizing Parallelism in the Construction of BVHs, Octrees, and k-d Trees): a radix tree over Morton codes.
// One kernel emits its nodes and their boxes bottom-up (Apetrei 2014: Fast and Simple Agglomerative LBVH Construction), and makes small subtrees
// leaves by the surface area heuristic. The traversal follows Aila, Laine 2009 (Understanding the Efficiency of Ray Traversal on GPUs) and Aila,
// Laine, Karras 2012 (its Kepler and Fermi Addendum): a node has the boxes of both children, and a warp takes new rays when most of its lanes have
// ended theirs. Triangles are tested after Möller, Trumbore 1997 (Fast, Minimum Storage Ray-Triangle Intersection).
#pragma once

#include "camera_rays.cuh"

#include <climits>

#include <cub/cub.cuh>

// Bits of a Morton code on each axis. Up to `MAX_SHORT` triangles have 30-bit codes, which are sorted in half of the passes. Rays visit the same
// number of nodes as with 48 bits in the dragon of 871,414 triangles and in a soup of 10M, and 3 % more in a terrain of 10M. Triangles of equal codes
// are separated by their indices.
template <class Code>
constexpr int AXIS_BITS = sizeof(Code) == 4 ? 10 : 21;
constexpr size_t MAX_SHORT = size_t(1) << 24;
// Maximum triangles of a leaf, at most 8, and the costs that decide whether a subtree becomes a leaf.
constexpr int MAX_LEAF = 4;
constexpr float NODE_COST = 1.0f, TRIANGLE_COST = 1.0f;
// Threads of a block that traces rays, and the number of active lanes below which a warp takes new rays.
constexpr int TRACE_THREADS = 128;
constexpr int REFILL = 16;
// Whether a lane that has reached a leaf keeps it and continues with nodes until all lanes of its warp have a leaf.
constexpr bool POSTPONES_LEAVES = true;

constexpr int BUILD_THREADS = 256;
constexpr unsigned FULL_WARP = 0xFFFFFFFFu;

// A node has the boxes of its two children: 64 bytes, which aligned loads read.
struct alignas(64) Node {
    // (low x, high x, low y, high y) of each child.
    float4 xy[2];
    // (low z, high z) of each child.
    float2 z[2];
    // The subtree of each child, encoded as by `leaf`.
    int children[2];
    // The cost of each child, for the build.
    float costs[2];
};

// A corner and the edges from it; the fourth number of the corner is the triangle's index in the mesh.
struct alignas(16) LeafTriangle {
    float4 corner, edge1, edge2;
};

// A subtree is the index of a node, or a leaf. A leaf is negative: the complement of its first triangle, with the number of triangles less 1 in the
// low bits.
constexpr int LEAF_BITS = 3;
static_assert(MAX_LEAF <= 1 << LEAF_BITS);
constexpr size_t MAX_TRIANGLES = size_t(1) << (31 - LEAF_BITS);
__host__ __device__ inline int leaf(int first, int num) { return ~(first << LEAF_BITS | (num - 1)); }
__host__ __device__ inline int leaf_begin(int leaf) { return ~leaf >> LEAF_BITS; }
__host__ __device__ inline int leaf_end(int leaf) { return leaf_begin(leaf) + (~leaf & ((1 << LEAF_BITS) - 1)) + 1; }

struct DeviceMesh {
    const float *vertices;
    const uint32_t *triangles;
    int num_vertices, num_triangles;

    __device__ float3 corner(int triangle, int k) const {
        const float *at = vertices + 3 * size_t(__ldg(&triangles[3 * size_t(triangle) + k]));
        return make_float3(__ldg(at), __ldg(at + 1), __ldg(at + 2));
    }
};

struct Bounds {
    float3 low, high;

    __device__ static Bounds of(float3 a, float3 b, float3 c) {
        return {make_float3(fminf(a.x, fminf(b.x, c.x)), fminf(a.y, fminf(b.y, c.y)), fminf(a.z, fminf(b.z, c.z))),
                make_float3(fmaxf(a.x, fmaxf(b.x, c.x)), fmaxf(a.y, fmaxf(b.y, c.y)), fmaxf(a.z, fmaxf(b.z, c.z)))};
    }
    __device__ Bounds joined(const Bounds &other) const {
        return {make_float3(fminf(low.x, other.low.x), fminf(low.y, other.low.y), fminf(low.z, other.low.z)),
                make_float3(fmaxf(high.x, other.high.x), fmaxf(high.y, other.high.y), fmaxf(high.z, other.high.z))};
    }
    __device__ float half_area() const {
        const float x = high.x - low.x, y = high.y - low.y, z = high.z - low.z;
        return x * y + y * z + z * x;
    }
};

// Maps floats to integers of the same order, for atomics.
__device__ inline unsigned ordered(float x) {
    const unsigned bits = __float_as_uint(x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ inline float of_ordered(unsigned x) { return __uint_as_float(x & 0x80000000u ? x & 0x7FFFFFFFu : ~x); }

// Computes the bounding box of all vertices as ordered integers. The high corner is complemented, so that all six numbers are minima and one
// `cudaMemsetAsync` initializes them.
static __global__ void __launch_bounds__(BUILD_THREADS) find_extent(DeviceMesh mesh, unsigned *extent) {
    __shared__ unsigned of_block[6];
    if (threadIdx.x < 6) of_block[threadIdx.x] = UINT_MAX;
    __syncthreads();
    unsigned least[6] = {UINT_MAX, UINT_MAX, UINT_MAX, UINT_MAX, UINT_MAX, UINT_MAX};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < mesh.num_vertices; i += gridDim.x * blockDim.x) {
#pragma unroll
        for (int axis = 0; axis < 3; axis++) {
            const unsigned x = ordered(__ldg(&mesh.vertices[3 * size_t(i) + axis]));
            least[axis] = min(least[axis], x);
            least[axis + 3] = min(least[axis + 3], ~x);
        }
    }
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const unsigned of_warp = __reduce_min_sync(FULL_WARP, least[k]);
        if (threadIdx.x % 32 == 0) atomicMin(&of_block[k], of_warp);
    }
    __syncthreads();
    if (threadIdx.x < 6) atomicMin(&extent[threadIdx.x], of_block[threadIdx.x]);
}

// Puts two zeros before each of the lowest 21 bits.
__device__ inline uint64_t spread(uint64_t x) {
    x = (x | x << 32) & 0x001F00000000FFFFull;
    x = (x | x << 16) & 0x001F0000FF0000FFull;
    x = (x | x << 8) & 0x100F00F00F00F00Full;
    x = (x | x << 4) & 0x10C30C30C30C30C3ull;
    return (x | x << 2) & 0x1249249249249249ull;
}

constexpr int NO_END = -1;

// Writes the Morton code of the center of each triangle's box, and resets the ends that subtrees exchange.
template <class Code>
__global__ void __launch_bounds__(BUILD_THREADS) find_codes(DeviceMesh mesh, const unsigned *extent, Code *codes, int *ids, int *ends) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= mesh.num_triangles) return;
    const float3 low = make_float3(of_ordered(extent[0]), of_ordered(extent[1]), of_ordered(extent[2]));
    const float3 high = make_float3(of_ordered(~extent[3]), of_ordered(~extent[4]), of_ordered(~extent[5]));
    // Cells are cubes. With equal numbers of cells on all axes rays visit a fifth more nodes of a terrain.
    const float side = fmaxf(high.x - low.x, fmaxf(high.y - low.y, high.z - low.z));
    const float per_length = float(1 << AXIS_BITS<Code>) / fmaxf(side, 1e-30f);
    const Bounds box = Bounds::of(mesh.corner(i, 0), mesh.corner(i, 1), mesh.corner(i, 2));
    auto cell = [=](float from, float to, float begin) {
        return uint64_t(min(unsigned((0.5f * (from + to) - begin) * per_length), (1u << AXIS_BITS<Code>) - 1));
    };
    codes[i] = Code(spread(cell(box.low.x, box.high.x, low.x)) << 2 | spread(cell(box.low.y, box.high.y, low.y)) << 1 |
                    spread(cell(box.low.z, box.high.z, low.z)));
    ids[i] = i;
    ends[i] = NO_END;
}

// Returns the bits in which neighbors i and i + 1 in the order of codes differ: the greater, the higher is the node that separates the neighbors.
// Equal codes are separated by their indices.
template <class Code>
__device__ uint64_t difference(const Code *codes, int i) {
    const uint64_t bits = __ldg(&codes[i]) ^ __ldg(&codes[i + 1]);
    return bits != 0 ? bits | 1ull << 63 : uint64_t(i ^ (i + 1));
}

// Emits the nodes bottom-up, a thread per triangle. Node i separates the sorted triangles i and i + 1. The parent of a subtree of the triangles
// `first` to `last` is node `first - 1` or `last`: the one whose codes differ less. The thread that arrives second at a node continues from it.
template <class Code>
__global__ void __launch_bounds__(BUILD_THREADS)
    emit(DeviceMesh mesh, const Code *codes, const int *ids, int *ends, Node *nodes, LeafTriangle *triangles, int *root) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = mesh.num_triangles;
    if (i >= n) return;
    const int id = ids[i];
    const float3 a = mesh.corner(id, 0), b = mesh.corner(id, 1), c = mesh.corner(id, 2);
    triangles[i] = {make_float4(a.x, a.y, a.z, __int_as_float(id)), make_float4(b.x - a.x, b.y - a.y, b.z - a.z, 0),
                    make_float4(c.x - a.x, c.y - a.y, c.z - a.z, 0)};
    Bounds box = Bounds::of(a, b, c);
    float cost = TRIANGLE_COST * box.half_area();
    int first = i, last = i, subtree = leaf(i, 1);
    uint64_t before = i > 0 ? difference(codes, i - 1) : UINT64_MAX, behind = i < n - 1 ? difference(codes, i) : UINT64_MAX;
    while (last - first < n - 1) {
        const int side = behind < before ? 0 : 1, at = side == 0 ? last : first - 1;
        Node &node = nodes[at];
        node.xy[side] = make_float4(box.low.x, box.high.x, box.low.y, box.high.y);
        node.z[side] = make_float2(box.low.z, box.high.z);
        node.children[side] = subtree;
        node.costs[side] = cost;
        __threadfence();
        const int end = atomicExch(&ends[at], side == 0 ? first : last);
        if (end == NO_END) return;
        __threadfence();
        // Another multiprocessor may have written the sibling, so the first-level cache may be stale.
        const float4 xy = __ldcg(&node.xy[1 - side]);
        const float2 z = __ldcg(&node.z[1 - side]);
        const float sibling_cost = __ldcg(&node.costs[1 - side]);
        box = box.joined({make_float3(xy.x, xy.z, z.x), make_float3(xy.y, xy.w, z.y)});
        if (side == 0) {
            last = end;
            behind = last < n - 1 ? difference(codes, last) : UINT64_MAX;
        } else {
            first = end;
            before = first > 0 ? difference(codes, first - 1) : UINT64_MAX;
        }
        const int num = last - first + 1;
        const float area = box.half_area(), leaf_cost = num * TRIANGLE_COST * area;
        cost += NODE_COST * area + sibling_cost;
        subtree = at;
        if (num <= MAX_LEAF && leaf_cost <= cost) {
            subtree = leaf(first, num);
            cost = leaf_cost;
        }
    }
    *root = subtree;
}

// Replaces the hit of a ray if the ray hits this triangle nearer.
__device__ inline void intersect(float3 o, float3 d, float t_min, float4 corner, float4 edge1, float4 edge2, Hit &hit) {
    const float px = d.y * edge2.z - d.z * edge2.y, py = d.z * edge2.x - d.x * edge2.z, pz = d.x * edge2.y - d.y * edge2.x;
    const float inverse = __fdividef(1.0f, edge1.x * px + edge1.y * py + edge1.z * pz);
    const float sx = o.x - corner.x, sy = o.y - corner.y, sz = o.z - corner.z;
    const float u = (sx * px + sy * py + sz * pz) * inverse;
    const float qx = sy * edge1.z - sz * edge1.y, qy = sz * edge1.x - sx * edge1.z, qz = sx * edge1.y - sy * edge1.x;
    const float v = (d.x * qx + d.y * qy + d.z * qz) * inverse;
    const float t = (edge2.x * qx + edge2.y * qy + edge2.z * qz) * inverse;
    // NaN, which a triangle without area has, is no hit.
    if (u >= 0 && v >= 0 && u + v <= 1 && t >= t_min && t < hit.t) hit = {t, u, v, __float_as_uint(corner.w)};
}

// No subtree: the ray has ended.
constexpr int ENDED = INT_MAX;

// Entries of a stack. A path has at most one node for each bit of a code and of an index, each node pushes at most one subtree, and `ENDED` is at the
// bottom.
constexpr int STACK = 3 * AXIS_BITS<uint64_t> + (31 - LEAF_BITS) + 1;

// Traces rays until all are taken; `taken` is 0 at the start. Writes the closest hit of each ray, or whether it has a hit.
template <bool ANY>
__global__ void __launch_bounds__(TRACE_THREADS)
    trace(const Node *nodes, const LeafTriangle *triangles, const int *root, const float4 *rays, int num_rays, int *taken, Hit *hits, uint8_t *any) {
    int stack[STACK];
    int top = 0, at = ENDED, ray = -1;
    float3 o{}, d{}, inverse{}, scaled{};
    float t_min = 0;
    Hit hit{};
    bool are_left = true;
    const unsigned lane = threadIdx.x % 32;
    for (;;) {
        const bool has_ended = at == ENDED;
        const unsigned idle = __ballot_sync(FULL_WARP, has_ended);
        if (has_ended && ray >= 0) {
            if (ANY) {
                any[ray] = hit.triangle != NO_TRIANGLE;
            } else {
                reinterpret_cast<float4 *>(hits)[ray] = make_float4(hit.t, hit.u, hit.v, __uint_as_float(hit.triangle));
            }
            ray = -1;
        }
        if (are_left) {
            int first = 0;
            if (lane == 0) first = atomicAdd(taken, __popc(idle));
            first = __shfl_sync(FULL_WARP, first, 0);
            const int next = first + __popc(idle & ((1u << lane) - 1));
            if (has_ended && next < num_rays) {
                ray = next;
                const float4 from = __ldg(&rays[2 * size_t(ray)]), towards = __ldg(&rays[2 * size_t(ray) + 1]);
                o = make_float3(from.x, from.y, from.z);
                d = make_float3(towards.x, towards.y, towards.z);
                t_min = from.w;
                hit = {towards.w, 0, 0, NO_TRIANGLE};
                // The inverse of 0 would make distances NaN.
                auto inverted = [](float x) { return 1.0f / (fabsf(x) > 1e-24f ? x : copysignf(1e-24f, x)); };
                inverse = make_float3(inverted(d.x), inverted(d.y), inverted(d.z));
                scaled = make_float3(o.x * inverse.x, o.y * inverse.y, o.z * inverse.z);
                top = 0;
                stack[top++] = ENDED;
                at = __ldg(root);
            }
            are_left = first + __popc(idle) < num_rays;
        } else if (idle == FULL_WARP) {
            return;
        }
        while (at != ENDED) {
            int leaf = 0;
            while (at >= 0 && at != ENDED) {
                const Node &node = nodes[at];
                const float4 left = __ldg(&node.xy[0]), right = __ldg(&node.xy[1]);
                const float4 z = __ldg(reinterpret_cast<const float4 *>(node.z));
                const int2 children = __ldg(reinterpret_cast<const int2 *>(node.children));
                auto enter = [&](float4 xy, float z_low, float z_high, float &near) {
                    const float x0 = xy.x * inverse.x - scaled.x, x1 = xy.y * inverse.x - scaled.x;
                    const float y0 = xy.z * inverse.y - scaled.y, y1 = xy.w * inverse.y - scaled.y;
                    const float z0 = z_low * inverse.z - scaled.z, z1 = z_high * inverse.z - scaled.z;
                    near = fmaxf(fmaxf(fminf(x0, x1), fminf(y0, y1)), fmaxf(fminf(z0, z1), t_min));
                    const float far = fminf(fminf(fmaxf(x0, x1), fmaxf(y0, y1)), fminf(fmaxf(z0, z1), hit.t));
                    return near <= far;
                };
                float left_near, right_near;
                const bool enters_left = enter(left, z.x, z.y, left_near), enters_right = enter(right, z.z, z.w, right_near);
                if (enters_left && enters_right) {
                    const bool is_left_first = left_near <= right_near;
                    at = is_left_first ? children.x : children.y;
                    stack[top++] = is_left_first ? children.y : children.x;
                } else if (enters_left || enters_right) {
                    at = enters_left ? children.x : children.y;
                } else {
                    at = stack[--top];
                }
                if (POSTPONES_LEAVES && at < 0 && leaf == 0) {
                    leaf = at;
                    at = stack[--top];
                }
                if (POSTPONES_LEAVES && !__any_sync(__activemask(), leaf == 0)) break;
            }
            if (leaf == 0 && at < 0) {
                leaf = at;
                at = stack[--top];
            }
            while (leaf < 0) {
                // Most leaves have one or two triangles.
#pragma unroll 1
                for (int i = leaf_begin(leaf), end = leaf_end(leaf); i < end; i++) {
                    const float4 corner = __ldg(&triangles[i].corner), edge1 = __ldg(&triangles[i].edge1);
                    intersect(o, d, t_min, corner, edge1, __ldg(&triangles[i].edge2), hit);
                }
                leaf = 0;
                if (ANY && hit.triangle != NO_TRIANGLE) {
                    at = ENDED;
                } else if (at < 0) {
                    leaf = at;
                    at = stack[--top];
                }
            }
            if (are_left && __popc(__activemask()) < REFILL) break;
        }
    }
}

// A hierarchy, with the memory to rebuild it.
template <class Code>
class Lbvh {
    DeviceMesh mesh;
    Array<Node> nodes;
    Array<LeafTriangle> triangles;
    Array<int> root;
    Array<unsigned> extent;
    Array<Code> codes, other_codes;
    Array<int> ids, other_ids, ends;
    size_t sort_bytes = 0;
    Array<char> sort_memory;
    mutable Array<int> taken;
    int processors = 0, closest_blocks = 0, any_blocks = 0;

    cudaError_t sort(void *memory, size_t &bytes, cub::DoubleBuffer<Code> &keys, cub::DoubleBuffer<int> &values) {
        return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, values, mesh.num_triangles, 0, 3 * AXIS_BITS<Code>);
    }

    size_t sort_size() {
        cub::DoubleBuffer<Code> keys(codes.data, other_codes.data);
        cub::DoubleBuffer<int> values(ids.data, other_ids.data);
        CHECK(sort(nullptr, sort_bytes, keys, values));
        return sort_bytes;
    }

    template <bool ANY>
    void launch_trace(const Array<Ray> &rays, Hit *hits, uint8_t *any) const {
        CHECK(cudaMemsetAsync(taken.data, 0, sizeof(int)));
        // Blocks that are resident together take all rays.
        const int blocks = processors * (ANY ? any_blocks : closest_blocks);
        trace<ANY><<<blocks, TRACE_THREADS>>>(nodes.data, triangles.data, root.data, reinterpret_cast<const float4 *>(rays.data), int(rays.len),
                                              taken.data, hits, any);
    }

public:
    explicit Lbvh(const DeviceMesh &mesh)
        : mesh(mesh), nodes(mesh.num_triangles), triangles(mesh.num_triangles), root(1), extent(6), codes(mesh.num_triangles),
          other_codes(mesh.num_triangles), ids(mesh.num_triangles), other_ids(mesh.num_triangles), ends(mesh.num_triangles),
          sort_memory(sort_size()), taken(1) {
        CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&closest_blocks, trace<false>, TRACE_THREADS, 0));
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&any_blocks, trace<true>, TRACE_THREADS, 0));
    }

    size_t temp_bytes() const { return sort_bytes + mesh.num_triangles * (2 * sizeof(Code) + 3 * sizeof(int)); }

    void build() {
        CHECK(cudaMemsetAsync(extent.data, 0xFF, 6 * sizeof(unsigned)));
        const int vertex_blocks = (mesh.num_vertices + BUILD_THREADS - 1) / BUILD_THREADS;
        // The number of blocks is limited because each has six atomics on the same words.
        find_extent<<<std::min(vertex_blocks, 8 * processors), BUILD_THREADS>>>(mesh, extent.data);
        const int blocks = (mesh.num_triangles + BUILD_THREADS - 1) / BUILD_THREADS;
        find_codes<Code><<<blocks, BUILD_THREADS>>>(mesh, extent.data, codes.data, ids.data, ends.data);
        cub::DoubleBuffer<Code> keys(codes.data, other_codes.data);
        cub::DoubleBuffer<int> values(ids.data, other_ids.data);
        CHECK(sort(sort_memory.data, sort_bytes, keys, values));
        emit<Code><<<blocks, BUILD_THREADS>>>(mesh, keys.Current(), values.Current(), ends.data, nodes.data, triangles.data, root.data);
    }

    void closest(const Array<Ray> &rays, Array<Hit> &hits) const { launch_trace<false>(rays, hits.data, nullptr); }
    void any(const Array<Ray> &rays, Array<uint8_t> &hits) const { launch_trace<true>(rays, nullptr, hits.data); }
};
