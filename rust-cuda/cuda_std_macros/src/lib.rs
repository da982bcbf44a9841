//! The macros of `cuda_std`: `#[kernel]` and the work behind `shared_array!`. Documented there.

mod args;
mod entry;
mod kernel;
mod marker;
mod params;
mod shared_array;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Makes an `unsafe fn` a kernel.
///
/// ```ignore
/// #[kernel(family = "kdtree", block = 256, shared = Smem<C>)]
/// #[instances(C = [f32, f64], D = [2, 3])]
/// #[instance(f32, 8)]
/// pub unsafe fn kdtree_nearest<C: Coord, const D: usize>(points: Slice<C>, ids: SliceMut<u32>, n: u32) {}
/// ```
///
/// The macro emits:
///
/// | target | items |
/// |---|---|
/// | the GPU | an *entry* of the PTX, which the driver finds by name; of a generic kernel one for each instance, named by the function and its generic arguments: `kdtree_nearest_f32_2` |
/// | any other | the function itself, for the simulator, and its *marker*: a type of the function's name, by which the host launches the kernel with checked arguments |
///
/// `cuda_std`'s front page has a complete kernel, and the module `device` of kauri has its launch.
///
/// # Options
/// All are optional. `block`, `shared`, `min_blocks` and `max_regs` may use the function's generic parameters.
///
/// | option | meaning |
/// |---|---|
/// | `block = EXPR` | threads of a block; the assembler gets them as the launch bound. Without it the launch chooses |
/// | `min_blocks = EXPR`, `max_regs = EXPR` | further launch bounds |
/// | `shared = TYPE` | the struct that the kernel keeps in launch-sized shared memory |
/// | `family = "name"` | the PTX that the kernel belongs to: its entries exist only with the feature `entries-name` |
/// | `hot` | the PTX lint allows no generic loads and stores in the kernel |
///
/// # Instances
/// A generic kernel has entries for the instances that its attributes list, written below `#[kernel]`. Both attributes may
/// be repeated; an instance that is listed twice is an error.
///
/// | attribute | instances |
/// |---|---|
/// | `#[instances(C = [f32, f64], D = [2, 3])]` | every combination: four here. There is an axis for each generic parameter, in order |
/// | `#[instance(f32, 8)]` | one |
///
/// # Parameters
/// `Slice<T>`, `SliceMut<T>` and `&[T]` (two scalars each: pointer, length), `*const T`, `*mut T`, numbers, and structs of
/// these that derive [`KernelArgs`](macro@KernelArgs).
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand(options.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct of views and numbers a parameter of kernels.
///
/// ```ignore
/// #[derive(Clone, Copy, KernelArgs)]
/// pub struct Points<'a, C> {
///     pub coords: Slice<'a, C>,
///     pub ids: Slice<'a, u32>,
///     pub dims: u32,
/// }
///
/// #[kernel(block = 256)]
/// #[instances(C = [f32, f64])]
/// pub unsafe fn sums<C: Coord>(points: Points<'_, C>, sums: SliceMut<C>) {}
///
/// // On the host:
/// let points = Points { coords: coords.slice(), ids: ids.slice(), dims: 3 };
/// unsafe { stream.launch_items::<sums<f32>>(n, (points, out.slice_mut()))? };
/// ```
///
/// The entry takes each field as a parameter of its own, so that loads through the views are loads from global memory; a
/// struct passed by value would make them generic.
///
/// | rule | example |
/// |---|---|
/// | The struct has named fields and is `Copy` | `#[derive(Clone, Copy, KernelArgs)]` |
/// | Fields are views, numbers and structs that derive `KernelArgs` | `pub bounds: crate::points::Bounds<C>` |
/// | Types of fields, and of the elements of views, are written from the root of the crate, so that kernels need not import them | `Slice<'a, crate::points::Node>` |
/// | A kernel imports the struct by `use`, which also imports a macro of that name | `use crate::points::Points;` |
/// | Fields are visible where the kernel is. Kernels of other crates may take a `pub` struct | `pub coords: …` |
/// | The kernel's signature elides the lifetime of views | `points: Points<'_, C>` |
#[proc_macro_derive(KernelArgs)]
pub fn kernel_args(item: TokenStream) -> TokenStream {
    args::derive(item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

#[doc(hidden)]
#[proc_macro]
pub fn __kernel_entries(input: TokenStream) -> TokenStream {
    args::flatten(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

#[doc(hidden)]
#[proc_macro]
pub fn __shared_array(input: TokenStream) -> TokenStream {
    shared_array::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
