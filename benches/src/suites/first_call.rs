//! First calls of each operation: every measurement is a process of its own, which opens the device, starts the clock, and makes one call
//! from host memory to host memory and then the same call again.
//!
//! The measured forms are machine code; PTX that the driver compiles; and PTX that an earlier process has left in the driver's cache.
//! Machine code is measured if the kernels of this program or of `KAURI_PTX_DIR` have it.

use super::{Settings, Suite};
use crate::measure::Timing;
use crate::points;
use crate::report::{Phase, Report, Row};
use kauri::balanced::{BalancedKdTree, BalancedOptions};
use kauri::device::{Buffer, Family, Gpu, KernelForm, Stream, Workspace};
use kauri::join::{DistanceJoin, KnnJoin, Scored, TopKDistanceJoin};
use kauri::mesh::{Mesh, shapes};
use kauri::primitives::operator::Sum;
use kauri::primitives::order::Ascending;
use kauri::primitives::predicate::{AtLeast, EqualBits};
use kauri::primitives::radix_sort::{self, RadixSortOptions};
use kauri::primitives::top_k::{Best, top_k};
use kauri::primitives::{merge_sort, reduce, scan, select, unique};
use kauri::quadtree::{Octree, Quadtree, QuadtreeOptions};
use kauri::query::QueryOptions;
use kauri::rays::{Ray, RayIndex};
use kauri::sah::{SahOptions, SahTree};
use kauri::{Device, Error, KdTree, KdTreeOptions, Result, SpatialIndex};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The suites.
pub const SUITES: [(&str, Suite); 1] = [("first-call", run)];

/// Most processes of a measurement.
const MAX_RUNS: usize = 3;

/// Argument of the program with which a process measures one operation.
pub const OPERATION_ARGUMENT: &str = "--operation";

/// The input of an operation, in host memory.
struct Input {
    points: Vec<[f32; 3]>,
    points_2d: Vec<[f32; 2]>,
    queries: Vec<[f32; 3]>,
    /// A distance within which a query has about 8 points.
    radius: f32,
    scores: Vec<u32>,
    keys: Vec<u32>,
    mesh: Mesh,
    rays: Vec<Ray>,
}

impl Input {
    fn new(n: usize, seed: u64) -> Result<Self> {
        let queries = points::uniform::<f32, 3>(n.div_ceil(10), seed + 1);
        let keys: Vec<u32> = (0..n as u64).map(|i| points::noise(seed, i) as u32).collect();
        Ok(Self {
            points: points::uniform(n, seed),
            points_2d: points::uniform(n, seed),
            radius: (8.0 / n as f32 / 4.19).cbrt(),
            scores: keys.iter().map(|key| key % 1000).collect(),
            keys,
            mesh: shapes::soup(n as u32 / 10, 2.0 / (n as f64 / 10.0).cbrt(), seed)?,
            rays: queries.iter().map(|&[x, y, _]| Ray::new([x, y, -1.0], [0.0, 0.0, 1.0])).collect(),
            queries,
        })
    }

    fn tree(&self, device: &Device) -> Result<KdTree<[f32; 3]>> {
        KdTree::build(device, &self.points, &KdTreeOptions::default())
    }

    /// Runs a primitive on the keys: `work` gets the keys and the output.
    fn primitive(
        &self,
        device: &Device,
        work: impl FnOnce(&Stream, &mut Workspace, &Buffer<u32>, &mut Buffer<u32>) -> Result<()>,
    ) -> Result<()> {
        let gpu = gpu(device)?;
        let (stream, mut workspace) = (Stream::new(gpu)?, Workspace::new(gpu));
        let keys = Buffer::from_slice(&stream, &self.keys, "keys")?;
        let mut output = Buffer::uninitialized(gpu, keys.len(), "output")?;
        work(&stream, &mut workspace, &keys, &mut output)?;
        output.to_vec(&stream).map(drop)
    }

    fn scored(&self) -> Result<Scored<'_, [f32; 3], u32>> {
        Scored::new(&self.points, &self.scores)
    }
}

fn gpu(device: &Device) -> Result<&Gpu> {
    device.gpu().ok_or(Error::NoDevice)
}

type Operation = fn(&Device, &Input) -> Result<()>;

/// Opens the device; the clock runs meanwhile.
const OPEN: &str = "open the device";
/// Opening the device without kauri: what every CUDA program waits for.
const BARE: &str = "cuInit and the primary context";

/// The operations by name.
const OPERATIONS: [(&str, Operation); 32] = [
    ("build", |device, input| input.tree(device).map(drop)),
    ("build, nearest k=8", |device, input| input.tree(device)?.nearest(&input.queries, 8).map(drop)),
    ("build, nearest k=100", |device, input| input.tree(device)?.nearest(&input.queries, 100).map(drop)),
    ("build, within radius", |device, input| {
        input.tree(device)?.within(&input.queries, input.radius, &QueryOptions::default()).map(drop)
    }),
    ("build, count within radius", |device, input| {
        input.tree(device)?.count_within(&input.queries, input.radius, &QueryOptions::default()).map(drop)
    }),
    ("build, in boxes", |device, input| input.tree(device)?.in_boxes(&boxes(input), None).map(drop)),
    ("build, count in boxes", |device, input| {
        input.tree(device)?.count_in_boxes(&boxes(input), None).map(drop)
    }),
    ("balanced tree, build", |device, input| {
        BalancedKdTree::build(device, &input.points, &BalancedOptions::default()).map(drop)
    }),
    ("balanced tree, build, nearest k=8", |device, input| {
        let tree = BalancedKdTree::build(device, &input.points, &BalancedOptions::default())?;
        tree.nearest(&input.queries, 8).map(drop)
    }),
    ("quadtree, build", |device, input| {
        Quadtree::build(device, &input.points_2d, &QuadtreeOptions::default()).map(drop)
    }),
    ("quadtree, build, leaves of points", |device, input| {
        let tree = Quadtree::build(device, &input.points_2d, &QuadtreeOptions::default())?;
        tree.leaf_of(&input.points_2d).map(drop)
    }),
    ("octree, build", |device, input| {
        Octree::build(device, &input.points, &QuadtreeOptions::default()).map(drop)
    }),
    ("octree, build, nearest k=8", |device, input| {
        let tree = Octree::build(device, &input.points, &QuadtreeOptions::default())?;
        tree.nearest(&input.queries, 8).map(drop)
    }),
    ("distance join, count", |device, input| {
        DistanceJoin::new(input.radius).count(device, &input.points, &input.queries).map(drop)
    }),
    ("distance join, rows", |device, input| {
        DistanceJoin::new(input.radius).rows(device, &input.points, &input.queries).map(drop)
    }),
    ("k nearest join, k=8", |device, input| {
        KnnJoin::new(8).run(device, &input.points, &input.queries).map(drop)
    }),
    ("top-k join, k=16", |device, input| {
        TopKDistanceJoin::new(input.radius, 16).run(device, input.scored()?, input.scored()?).map(drop)
    }),
    ("top-k join, k=1000", |device, input| {
        TopKDistanceJoin::new(input.radius, 1000).run(device, input.scored()?, input.scored()?).map(drop)
    }),
    ("triangles, build", |device, input| {
        SahTree::build(device, &input.mesh, &SahOptions::default()).map(drop)
    }),
    ("triangles, build, closest hits", |device, input| {
        SahTree::build(device, &input.mesh, &SahOptions::default())?.closest_hits(&input.rays).map(drop)
    }),
    ("triangles, build, any hits", |device, input| {
        SahTree::build(device, &input.mesh, &SahOptions::default())?.any_hits(&input.rays).map(drop)
    }),
    ("radix sort, keys", |device, input| {
        input.primitive(device, |stream, workspace, keys, sorted| {
            radix_sort::sort_keys(stream, workspace, keys, sorted, &RadixSortOptions::default())
        })
    }),
    ("radix sort, pairs", |device, input| {
        let mut values = Buffer::<u32>::uninitialized(gpu(device)?, input.keys.len(), "sorted values")?;
        input.primitive(device, |stream, workspace, keys, sorted| {
            let options = RadixSortOptions::default();
            radix_sort::sort_pairs(stream, workspace, keys, keys, sorted, &mut values, &options)
        })
    }),
    ("merge sort, pairs", |device, input| {
        let mut values = Buffer::<u32>::uninitialized(gpu(device)?, input.keys.len(), "sorted values")?;
        input.primitive(device, |stream, workspace, keys, sorted| {
            merge_sort::sort_pairs::<u32, Ascending>(stream, workspace, keys, keys, sorted, &mut values)
        })
    }),
    ("scan, sum", |device, input| {
        input.primitive(device, |stream, workspace, keys, sums| {
            scan::inclusive::<u32, Sum>(stream, workspace, keys, sums)
        })
    }),
    ("reduce, sum", |device, input| {
        let mut sum = Buffer::<u32>::uninitialized(gpu(device)?, 1, "sum")?;
        input.primitive(device, |stream, workspace, keys, _| {
            reduce::reduce::<u32, Sum>(stream, workspace, keys, &mut sum)
        })
    }),
    ("select", |device, input| {
        let mut count = Buffer::<u64>::uninitialized(gpu(device)?, 1, "count")?;
        input.primitive(device, |stream, workspace, keys, kept| {
            select::matching::<u32, AtLeast>(stream, workspace, keys, 1 << 31, kept, &mut count)
        })
    }),
    ("unique", |device, input| {
        let mut count = Buffer::<u64>::uninitialized(gpu(device)?, 1, "count")?;
        input.primitive(device, |stream, workspace, keys, kept| {
            unique::unique::<u32, EqualBits>(stream, workspace, keys, kept, &mut count)
        })
    }),
    ("top k, k=1000", |device, input| {
        let k = input.keys.len().min(1000);
        let mut best = Buffer::<u32>::uninitialized(gpu(device)?, k, "best keys")?;
        let mut ids = Buffer::<u32>::uninitialized(gpu(device)?, k, "ids")?;
        input.primitive(device, |stream, workspace, keys, _| {
            top_k(stream, workspace, keys, Best::Largest, &mut best, &mut ids)
        })
    }),
    ("copy to the device and back", |device, input| {
        input.primitive(device, |stream, _, keys, output| output.copy_from(stream, keys))
    }),
    (OPEN, |_, _| Ok(())),
    (BARE, |_, _| Ok(())),
];

/// Returns a box around each query.
fn boxes(input: &Input) -> Vec<[[f32; 3]; 2]> {
    let corner = |query: &[f32; 3], sign: f32| query.map(|x| x + sign * input.radius);
    input.queries.iter().map(|query| [corner(query, -1.0), corner(query, 1.0)]).collect()
}

/// A form of the kernels, and a state of the driver's cache.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The operation launches no kernel.
    NoKernels,
    MachineCode,
    Ptx,
    CachedPtx,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::NoKernels => "no kernels",
            Self::MachineCode => "machine code",
            Self::Ptx => "PTX, not in the driver's cache",
            Self::CachedPtx => "PTX, in the driver's cache",
        }
    }

    /// Sets the environment of a process. `cache` is a folder for the driver's cache.
    fn prepare(self, command: &mut Command, cache: &Path) {
        match self {
            Self::NoKernels | Self::MachineCode => {
                command.env("CUDA_CACHE_DISABLE", "1").env_remove("KAURI_MACHINE_CODE")
            }
            Self::Ptx => command.env("CUDA_CACHE_DISABLE", "1").env("KAURI_MACHINE_CODE", "0"),
            Self::CachedPtx => command
                .env("CUDA_CACHE_PATH", cache)
                .env_remove("CUDA_CACHE_DISABLE")
                .env("KAURI_MACHINE_CODE", "0"),
        };
    }
}

fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let cache = std::env::temp_dir().join(format!("kauri-first-call-{}", std::process::id()));
    let mut forms = vec![Form::MachineCode, Form::Ptx, Form::CachedPtx];
    for family in Family::ALL {
        if settings.device.kernel_form(family)? != Some(KernelForm::MachineCode) {
            forms.retain(|form| *form != Form::MachineCode);
        }
    }
    for &n in &settings.sizes {
        for (operation, _) in OPERATIONS {
            let forms = if [OPEN, BARE].contains(&operation) { &[Form::NoKernels] } else { &forms[..] };
            for &form in forms {
                report.push(measure(settings, operation, form, n, &cache));
            }
        }
    }
    // Nothing is lost if the driver still has a file there.
    let _ = std::fs::remove_dir_all(&cache);
    Ok(())
}

/// Runs processes that measure an operation.
fn measure(settings: &Settings, operation: &str, form: Form, n: usize, cache: &Path) -> Row {
    let mut row = Row {
        work: operation.to_owned(),
        input: format!("f32 x 3, uniform, {}", form.name()),
        n: n as u64,
        ..Row::default()
    };
    let one = || process(settings, operation, form, n, cache);
    let warm_up = if form == Form::CachedPtx { one().map(drop) } else { Ok(()) };
    let begin = Instant::now();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let mut failure = warm_up.err();
    while failure.is_none() && first.len() < settings.effort.runs.min(MAX_RUNS) {
        match one() {
            Ok(times) => {
                first.push(times[0]);
                second.push(times[1]);
            }
            Err(error) => failure = Some(error),
        }
        if begin.elapsed() > settings.effort.limit {
            break;
        }
    }
    if !first.is_empty() {
        let again = Timing::of("wall", &second).median_ms;
        row.timing = Some(Timing::of("wall", &first));
        row.phases = Phase::all([("the same call again", again)]);
        row.note = Some(format!("again {again:.3} ms"));
    }
    row.note = failure.or(row.note);
    row
}

/// Measures an operation in a process of its own: the times of its first and of its second call.
fn process(
    settings: &Settings,
    operation: &str,
    form: Form,
    n: usize,
    cache: &Path,
) -> Result<[Duration; 2], String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let gpu = settings.device.gpu().ok_or("a GPU is needed")?;
    let mut command = Command::new(program);
    command.args(["--suite", "first-call", OPERATION_ARGUMENT, operation, "--device", &gpu.info().id]);
    command.args(["--n", &n.to_string(), "--seed", &settings.seed.to_string()]);
    form.prepare(&mut command, cache);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let times: Vec<_> =
        text.split_whitespace().filter_map(|word| Some(Duration::from_nanos(word.parse().ok()?))).collect();
    times.try_into().map_err(|_| {
        let log = String::from_utf8_lossy(&output.stderr);
        log.lines().last().unwrap_or("the process printed no times").to_owned()
    })
}

/// The process of one measurement: prints the nanoseconds of the first and of the second call.
///
/// # Errors
/// The errors of the operation.
pub fn operation(name: &str, device: &str, n: usize, seed: u64) -> Result<()> {
    let unknown = || Error::UnknownDevice { name: name.to_owned() };
    let (name, run) = OPERATIONS.into_iter().find(|(other, _)| *other == name).ok_or_else(unknown)?;
    let times = match name {
        OPEN => {
            [timed(|| Device::from_name(device).map(drop))?, timed(|| Device::from_name(device).map(drop))?]
        }
        BARE => [timed(bare)?, timed(bare)?],
        _ => {
            let input = Input::new(n, seed)?;
            let device = Device::from_name(device)?;
            [timed(|| run(&device, &input))?, timed(|| run(&device, &input))?]
        }
    };
    println!("{} {}", times[0].as_nanos(), times[1].as_nanos());
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

/// Initializes the driver and the context of its first device.
fn bare() -> Result<()> {
    let (mut device, mut context) = (0, std::ptr::null_mut());
    // SAFETY: each call writes a value of its type.
    let codes = unsafe {
        [
            cuda_lazy::driver::cuInit(0),
            cuda_lazy::driver::cuDeviceGet(&mut device, 0),
            cuda_lazy::driver::cuDevicePrimaryCtxRetain(&mut context, device),
        ]
    };
    if codes == [0; 3] { Ok(()) } else { Err(Error::NoDevice) }
}
