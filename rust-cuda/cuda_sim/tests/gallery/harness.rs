//! Cases of the gallery, and their runner.

use cuda_sim::{Kind, LaunchSpec, Machine, MachineInfo, Options, SimError};
use cuda_std::kernel::Kernel;
use cuda_std::mem::{Slice, SliceMut};

/// A wrong kernel and its right twin.
#[derive(Clone)]
pub(crate) struct Case {
    /// Names the case. Lines at fault end in `// ! ` and the name or a beginning of it.
    pub(crate) name: &'static str,
    /// How the wrong kernel must be caught.
    pub(crate) caught_as: CaughtAs,
    /// True if every schedule must catch it, not only one.
    pub(crate) always: bool,
    pub(crate) wrong: fn(&Device) -> Result<Vec<u32>, SimError>,
    pub(crate) right: fn(&Device) -> Result<Vec<u32>, SimError>,
    /// Expected values of the right kernel.
    pub(crate) values: fn() -> Vec<u32>,
    /// Name and text of the file with the marks.
    pub(crate) source: (&'static str, &'static str),
}

/// How a wrong kernel is caught.
#[derive(Clone, Copy)]
pub(crate) enum CaughtAs {
    /// By an error of this kind, at marked lines only.
    Error(&'static str, fn(&Kind) -> bool),
    /// By wrong values, if the kernel violates no rule of the machine, or by one of these errors.
    WrongValues(fn(&Kind) -> bool),
}

/// `CaughtAs::Error` for a kind or some kinds.
macro_rules! error {
    ($($kind:ident)|+) => {
        $crate::harness::CaughtAs::Error(stringify!($($kind)|+), |kind| {
            matches!(kind, $(cuda_sim::Kind::$kind { .. })|+)
        })
    };
}
pub(crate) use error;

/// This file's name and text.
macro_rules! source {
    ($name:literal) => {
        (concat!("tests/gallery/", $name), include_str!($name))
    };
}
pub(crate) use source;

impl Case {
    fn marked_lines(&self) -> Vec<String> {
        let (file, text) = self.source;
        let is_ours =
            |line: &str| line.split_once("// ! ").is_some_and(|(_, mark)| self.name.starts_with(mark));
        let marked = text.lines().zip(1..).filter(|(line, _)| is_ours(line));
        marked.map(|(_, number)| format!("{file}:{number}:")).collect()
    }

    /// Runs the wrong kernel under the standard schedules.
    pub(crate) fn wrong_is_caught(&self) -> Result<(), String> {
        let mut caught = 0;
        for i in 0..Options::ORDERS {
            let device = Device::new(schedule(i));
            let result = (self.wrong)(&device);
            caught += u32::from(match (self.caught_as, &result) {
                (CaughtAs::WrongValues(_), Ok(values)) => *values != (self.values)(),
                (CaughtAs::Error(..), Ok(_)) => false,
                (CaughtAs::Error(_, is_kind) | CaughtAs::WrongValues(is_kind), Err(error))
                    if is_kind(error.kind()) =>
                {
                    self.check_places(error)?;
                    true
                }
                (CaughtAs::Error(kind, _), Err(error)) => {
                    return Err(format!("{}: expected {kind} under schedule {i}, got\n{error}", self.name));
                }
                (CaughtAs::WrongValues(_), Err(error)) => {
                    return Err(format!(
                        "{}: expected no such error under schedule {i}, got\n{error}",
                        self.name
                    ));
                }
            });
            if self.always && caught <= i as u32 {
                return Err(format!("{}: not caught under schedule {i}: {result:?}", self.name));
            }
        }
        if caught == 0 {
            return Err(format!("{}: not caught under any schedule", self.name));
        }
        Ok(())
    }

    fn check_places(&self, error: &SimError) -> Result<(), String> {
        let marked = self.marked_lines();
        let is_marked = |location: &str| marked.iter().any(|m| location.contains(m.as_str()));
        let mut sites: Vec<String> =
            error.events().iter().filter_map(|e| e.site).map(|s| s.to_string()).collect();
        if let Kind::Panic { location, .. } = error.kind() {
            sites.push(location.clone());
        }
        let unknown = error.events().len() > sites.len();
        if unknown || !sites.iter().all(|s| is_marked(s)) {
            return Err(format!("{}: expected places {marked:?}, got {sites:?} in\n{error}", self.name));
        }
        let last = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
        if !last.starts_with("replay with SIM_SEED=") {
            return Err(format!("{}: no way to replay in\n{error}", self.name));
        }
        Ok(())
    }

    /// Runs the right kernel under the standard schedules.
    pub(crate) fn right_passes(&self) -> Result<(), String> {
        for i in 0..Options::ORDERS {
            let device = Device::new(schedule(i));
            match (self.right)(&device) {
                Ok(values) if values == (self.values)() => {}
                Ok(values) => {
                    return Err(format!("{}: the right twin gives {values:?} under schedule {i}", self.name));
                }
                Err(error) => {
                    return Err(format!("{}: the right twin fails under schedule {i}\n{error}", self.name));
                }
            }
        }
        Ok(())
    }
}

/// Standard schedule `i`. A small budget: the cases are small.
pub(crate) fn schedule(i: usize) -> Options {
    Options { step_budget: 1 << 18, ..Options::nth_order(i, 1) }
}

/// Runs a check under the standard schedules.
pub(crate) fn under_all(check: impl Fn(&Device)) {
    (0..Options::ORDERS).for_each(|i| check(&Device::new(schedule(i))));
}

/// A machine, with views of its memory.
pub(crate) struct Device {
    pub(crate) machine: Machine,
}

/// An array on the device.
#[derive(Clone, Copy)]
pub(crate) struct Array {
    pub(crate) address: u64,
    pub(crate) len: usize,
}

impl Device {
    pub(crate) fn new(options: Options) -> Self {
        Self { machine: Machine::new(MachineInfo::default(), options) }
    }

    /// An array with these items.
    pub(crate) fn array<T: Copy>(&self, items: &[T]) -> Array {
        let array = self.fresh::<T>(items.len());
        let bytes = unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) };
        self.machine.copy_to_device(array.address, bytes).unwrap();
        array
    }

    /// Launches a kernel, and shows a report as it is meant to be read.
    pub(crate) fn run<K: Kernel>(&self, blocks: u32, args: K::Args<'_>) {
        self.launch::<K>(blocks, args).unwrap_or_else(|error| panic!("{error}"));
    }

    /// An array of zeros.
    pub(crate) fn zeros(&self, len: usize) -> Array {
        self.array(&vec![0u32; len])
    }

    /// An unwritten array.
    pub(crate) fn fresh<T>(&self, len: usize) -> Array {
        let address = self.machine.alloc((len * size_of::<T>()) as u64, "array").unwrap();
        Array { address, len }
    }

    pub(crate) fn read<T: Copy + Default>(&self, array: Array) -> Result<Vec<T>, SimError> {
        let mut items = vec![T::default(); array.len];
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), size_of_val(items.as_slice()))
        };
        self.machine.copy_to_host(bytes, array.address)?;
        Ok(items)
    }

    /// Launches a kernel with the block size and shared memory that it declares.
    pub(crate) fn launch<K: Kernel>(&self, blocks: u32, args: K::Args<'_>) -> Result<(), SimError> {
        let run = || unsafe { K::call(&args) };
        let name = K::name();
        let spec = LaunchSpec::new(&name, blocks, K::BLOCK, K::SHARED_BYTES, &run);
        self.machine.launch(&spec).map(drop)
    }

    /// Launches a kernel with an input and an output; returns the output. The input is 0, 1, 2 …
    pub(crate) fn in_out<K>(&self, blocks: u32, inputs: usize, outputs: usize) -> Result<Vec<u32>, SimError>
    where
        K: for<'a> Kernel<Args<'a> = (Slice<'a, u32>, SliceMut<'a, u32>)>,
    {
        let input = self.array(&(0..inputs as u32).collect::<Vec<_>>());
        let out = self.zeros(outputs);
        self.launch::<K>(blocks, (input.slice(), out.slice_mut()))?;
        self.read(out)
    }
}

impl Array {
    pub(crate) fn slice<'a, T>(self) -> Slice<'a, T> {
        unsafe { Slice::from_raw_parts(self.address as *const T, self.len) }
    }

    pub(crate) fn slice_mut<'a, T>(self) -> SliceMut<'a, T> {
        unsafe { SliceMut::from_raw_parts(self.address as *mut T, self.len) }
    }
}
