//! The host's side of a kernel: what `#[kernel]` emits for launching it by its type.

use crate::mem::{Slice, SliceMut};
use std::fmt::Write;

/// A kernel as the host sees it. Implemented by the marker type that `#[kernel]` emits beside each kernel function,
/// with the function's name and generics.
pub trait Kernel: 'static {
    /// The arguments, a tuple with one item a parameter of the kernel function.
    type Args<'a>;
    /// Threads of a block; 0 if the launch chooses.
    const BLOCK: u32;
    /// Blocks that a multiprocessor is to hold, 0 if the kernel does not say.
    const MIN_BLOCKS: u32;
    /// Registers that a thread may use, 0 if the kernel does not say.
    const MAX_REGS: u32;
    /// Bytes of launch-sized shared memory.
    const SHARED_BYTES: usize;
    /// The family of kernels, each compiled to a PTX of its own; empty if the crate has only one.
    const FAMILY: &'static str;
    /// Names of all entries of this kernel function: one for each instance.
    const ENTRIES: &'static [&'static str];

    /// Name of the entry in the PTX: the function's name, followed by its generic arguments.
    fn name() -> String;
    /// Appends the arguments as the scalars that the entry takes.
    fn push(args: &Self::Args<'_>, params: &mut Params);
    /// Runs the kernel function as one thread of a simulated launch.
    ///
    /// # Safety
    /// The kernel's own, and a [`Simt`](crate::simt::Simt) must be current.
    unsafe fn call(args: &Self::Args<'_>);
}

/// The scalar parameters of a launch.
#[derive(Clone, Debug, Default)]
pub struct Params {
    words: Vec<u64>,
}

impl Params {
    /// One word a parameter, with the value in its low bytes.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Pointers to the parameters, as the driver takes them. Valid while `self` is not changed.
    pub fn pointers(&self) -> Vec<*const u64> {
        self.words.iter().map(|word| &raw const *word).collect()
    }
}

/// An argument of a launch. It becomes scalar parameters of the entry: a view two, a number one, a struct with
/// [`#[derive(KernelArgs)]`](macro@crate::KernelArgs) those of its fields.
///
/// A kernel that takes another type does not compile:
///
/// ```compile_fail,E0277
/// use cuda_std::prelude::*;
/// #[derive(Clone, Copy)]
/// struct NotDerived {
///     dims: u32,
/// }
/// #[kernel]
/// unsafe fn fill(_points: NotDerived, _out: SliceMut<u32>) {}
/// ```
/// A struct of arguments is `Copy`, because the host copies its fields into the launch:
///
/// ```compile_fail,E0277
/// use cuda_std::prelude::*;
/// #[derive(KernelArgs)]
/// struct NotCopy {
///     dims: u32,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel",
    label = "not an argument of kernels",
    note = "kernels take `Slice`, `SliceMut`, numbers, and structs of these with `#[derive(Clone, Copy, KernelArgs)]`"
)]
pub trait KernelArg: Copy {
    /// Appends the parameters.
    fn push(&self, params: &mut Params);
}

impl<T> KernelArg for Slice<'_, T> {
    fn push(&self, params: &mut Params) {
        params.words.extend([self.as_ptr() as u64, self.len() as u64]);
    }
}

impl<T> KernelArg for SliceMut<'_, T> {
    fn push(&self, params: &mut Params) {
        params.words.extend([self.as_ptr() as u64, self.len() as u64]);
    }
}

/// Appends only the address of a view: the parameter is a raw pointer.
#[doc(hidden)]
pub fn push_pointer<T>(pointer: *const T, params: &mut Params) {
    params.words.push(pointer as u64);
}

macro_rules! scalars {
    ($($t:ty: $to:expr;)*) => { $(
        impl KernelArg for $t {
            fn push(&self, params: &mut Params) {
                params.words.push($to(*self));
            }
        }
    )* };
}
scalars! {
    u8: u64::from;
    u16: u64::from;
    u32: u64::from;
    u64: |x| x;
    usize: |x| x as u64;
    i8: |x| x as u8 as u64;
    i16: |x| x as u16 as u64;
    i32: |x| x as u32 as u64;
    i64: |x| x as u64;
    isize: |x| x as u64;
    f32: |x: f32| x.to_bits().into();
    f64: f64::to_bits;
}

/// Appends a type argument to an entry name: the last segment of the type's path.
#[doc(hidden)]
pub fn push_type_name<T: ?Sized>(name: &mut String) {
    let path = std::any::type_name::<T>();
    name.push('_');
    name.push_str(path.rsplit("::").next().unwrap_or(path));
}

/// Appends a const argument to an entry name.
#[doc(hidden)]
pub fn push_const(name: &mut String, value: impl std::fmt::Display) {
    let _ = write!(name, "_{value}");
}
