// Bounding volume hierarchies of triangles and rays through them: the rival of kauri's `Bvh` in the suite `sah`, with the suite's meshes and rays.
// Arguments are a seed, then sizes and paths of raw meshes (`read_raw`). Needs compute capability 8.0.
// Build: nvcc -O3 -std=c++17 -arch=native -o bvh_rays bvh_rays.cu
#include "lbvh.cuh"

#include <cstring>

const char *const SYSTEM = "LBVH in CUDA";

template <class T>
void upload(Array<T> &to, const T *from) {
    CHECK(cudaMemcpy(to.data, from, to.len * sizeof(T), cudaMemcpyHostToDevice));
}

template <class T>
std::vector<T> download(const Array<T> &from) {
    std::vector<T> to(from.len);
    CHECK(cudaMemcpy(to.data(), from.data, from.len * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
}

// A mesh in device memory.
struct Resident {
    Array<Vec3> vertices;
    Array<Corners> triangles;

    explicit Resident(const Mesh &mesh) : vertices(mesh.vertices.size()), triangles(mesh.triangles.size()) {
        upload(vertices, mesh.vertices.data());
        upload(triangles, mesh.triangles.data());
    }

    DeviceMesh mesh() const {
        return {reinterpret_cast<const float *>(vertices.data), reinterpret_cast<const uint32_t *>(triangles.data), int(vertices.len),
                int(triangles.len)};
    }
};

struct DeviceRays : Array<Ray> {
    explicit DeviceRays(const std::vector<Ray> &rays) : Array<Ray>(rays.size()) { upload(*this, rays.data()); }
};

// Finds the closest hit of each ray by testing all triangles. `first` becomes the bits of `t`, which have the order of the numbers. `SHARE` threads
// share a ray.
constexpr int SHARE = 128;
__global__ void test_all(DeviceMesh mesh, const float4 *rays, int num_rays, unsigned *first) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x, ray = thread / SHARE;
    if (ray >= num_rays) return;
    const float4 from = rays[2 * ray], towards = rays[2 * ray + 1];
    Hit hit{towards.w, 0, 0, NO_TRIANGLE};
    for (int i = thread % SHARE; i < mesh.num_triangles; i += SHARE) {
        const float3 a = mesh.corner(i, 0), b = mesh.corner(i, 1), c = mesh.corner(i, 2);
        intersect(make_float3(from.x, from.y, from.z), make_float3(towards.x, towards.y, towards.z), from.w, make_float4(a.x, a.y, a.z, 0),
                  make_float4(b.x - a.x, b.y - a.y, b.z - a.z, 0), make_float4(c.x - a.x, c.y - a.y, c.z - a.z, 0), hit);
    }
    atomicMin(&first[ray], __float_as_uint(hit.t));
}

// Compares hits with a test of all triangles. A wrong hierarchy ends the program, since its speed is of no interest. A few rays may differ, because
// distances to boxes are rounded.
template <class Code>
void check(const Mesh &mesh, const Resident &resident, const Lbvh<Code> &tree, uint64_t seed) {
    constexpr size_t RAYS = 1000, MAX_WRONG = 5;
    const DeviceRays rays(MeshRays(mesh, seed).random(RAYS));
    Array<Hit> hits(RAYS);
    Array<uint8_t> any(RAYS);
    Array<unsigned> first(RAYS);
    CHECK(cudaMemset(first.data, 0xFF, RAYS * sizeof(unsigned)));
    tree.closest(rays, hits);
    tree.any(rays, any);
    test_all<<<RAYS * SHARE / 128, 128>>>(resident.mesh(), reinterpret_cast<const float4 *>(rays.data), int(RAYS), first.data);
    CHECK(cudaGetLastError());
    const std::vector<Hit> found = download(hits);
    const std::vector<uint8_t> found_any = download(any);
    const std::vector<unsigned> bits = download(first);
    size_t num_wrong = 0, num_hits = 0;
    for (size_t i = 0; i < RAYS; i++) {
        float expected;
        std::memcpy(&expected, &bits[i], sizeof(expected));
        const bool is_hit = expected < std::numeric_limits<float>::infinity();
        const bool is_near = is_hit && std::fabs(found[i].t - expected) <= 1e-4f * expected;
        const bool is_right = is_hit ? is_near && found[i].triangle < mesh.triangles.size() : found[i].triangle == NO_TRIANGLE;
        num_wrong += !is_right || bool(found_any[i]) != is_hit;
        num_hits += is_hit;
    }
    std::fprintf(stderr, "check  %s  n=%zu  %zu of %zu rays hit, %zu differ\n", mesh.name.c_str(), mesh.triangles.size(), num_hits, RAYS, num_wrong);
    if (num_wrong > MAX_WRONG) std::exit(1);
}

// Measures a query, and prints how many rays hit.
template <class T, class F, class P>
std::vector<T> trace_row(const Mesh &mesh, const std::string &work, const DeviceRays &rays, F trace, P is_hit) {
    Array<T> hits(rays.len);
    std::vector<T> found;
    size_t num_hits = 0;
    row(SYSTEM, work, mesh.name, mesh.triangles.size(), 0, [&] { trace(hits); }, [] {}, [&] {
        found = download(hits);
        num_hits = size_t(std::count_if(found.begin(), found.end(), is_hit));
        return ",\"items\":" + std::to_string(rays.len) + ",\"hits\":" + std::to_string(num_hits);
    });
    std::fprintf(stderr, "%s  %s  n=%zu  %zu rays, %.2f %% hit\n", work.c_str(), mesh.name.c_str(), mesh.triangles.size(), rays.len,
                 100.0 * double(num_hits) / double(std::max<size_t>(rays.len, 1)));
    return found;
}

template <class Code>
std::vector<Hit> closest_row(const Mesh &mesh, const std::string &work, const Lbvh<Code> &tree, const std::vector<Ray> &rays) {
    const DeviceRays on_device(rays);
    return trace_row<Hit>(mesh, work, on_device, [&](Array<Hit> &hits) { tree.closest(on_device, hits); },
                          [](const Hit &hit) { return hit.triangle != NO_TRIANGLE; });
}

template <class Code>
void any_row(const Mesh &mesh, const std::string &work, const Lbvh<Code> &tree, const std::vector<Ray> &rays) {
    const DeviceRays on_device(rays);
    trace_row<uint8_t>(mesh, work, on_device, [&](Array<uint8_t> &hits) { tree.any(on_device, hits); }, [](uint8_t hit) { return hit != 0; });
}

template <class Code>
void measure_with(const Mesh &mesh, uint64_t seed) {
    const Resident resident(mesh);
    Lbvh<Code> tree(resident.mesh());
    row(SYSTEM, "rebuild, Bvh", mesh.name, mesh.triangles.size(), tree.temp_bytes(), [&] { tree.build(); });
    check(mesh, resident, tree, seed);
    const MeshRays mesh_rays(mesh, seed);
    const std::vector<Ray> primary = Camera(mesh).rays();
    const std::vector<Hit> hits = closest_row(mesh, "primary rays, closest, Bvh", tree, primary);
    closest_row(mesh, "random rays, closest, Bvh", tree, mesh_rays.random(primary.size()));
    any_row(mesh, "shadow rays, any, Bvh", tree, mesh_rays.shadow(primary, hits));
    const std::vector<Ray> occlusion = mesh_rays.occlusion(primary, hits);
    any_row(mesh, "occlusion rays, any, Bvh", tree, occlusion);
    closest_row(mesh, "occlusion rays, closest, Bvh", tree, occlusion);
}

void measure(const Mesh &mesh, uint64_t seed) {
    if (mesh.triangles.size() > MAX_TRIANGLES) {
        std::fprintf(stderr, "%s has too many triangles\n", mesh.name.c_str());
        std::exit(1);
    }
    mesh.triangles.size() <= MAX_SHORT ? measure_with<uint32_t>(mesh, seed) : measure_with<uint64_t>(mesh, seed);
}

// Checks both kinds of codes.
template <class Code>
void check_small(uint64_t seed) {
    const Mesh mesh = soup(1000, 0.2, seed);
    const Resident resident(mesh);
    Lbvh<Code> tree(resident.mesh());
    tree.build();
    check(mesh, resident, tree, seed);
}

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s SEED SIZE_OR_RAW_MESH...\n", argv[0]);
        return 2;
    }
    const uint64_t seed = std::strtoull(argv[1], nullptr, 10);
    check_small<uint32_t>(seed);
    check_small<uint64_t>(seed);
    for (int i = 2; i < argc; i++) {
        char *end = nullptr;
        const size_t n = size_t(std::strtod(argv[i], &end));
        if (*end != '\0') {
            measure(read_raw(argv[i]), seed);
            continue;
        }
        for (const Mesh &mesh : generated_meshes(n, seed)) measure(mesh, seed);
    }
    return 0;
}
