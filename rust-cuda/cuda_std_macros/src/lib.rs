//! The macros of `cuda_std`: `#[kernel]` and the work behind `shared_array!`. Documented there.

mod args;
mod entry;
mod kernel;
mod marker;
mod params;
mod shared_array;

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
/// On the GPU target it emits an entry (for a generic kernel one entry an instance, named by the function and its generic
/// arguments: `kdtree_nearest_f32_2`). On any other target it emits only the function and a type with its name, the
/// *marker*, by which the host launches the kernel with checked arguments.
///
/// `#[instances(C = […], D = […])]` makes an instance of each combination of the values of the axes, one axis a generic
/// parameter, in order. `#[instance(f32, 8)]` makes a single one. Both may be given several times.
///
/// Parameters: `Slice<T>`, `SliceMut<T>`, `&[T]` (two scalars each: pointer, length), `*const T`, `*mut T`, numbers, and
/// structs of these that derive [`KernelArgs`](macro@KernelArgs).
///
/// Options, all optional:
/// - `block = EXPR`: threads of a block, also told to the assembler as the launch bound;
/// - `min_blocks = EXPR`, `max_regs = EXPR`: further launch bounds;
/// - `shared = TYPE`: the struct that the kernel keeps in launch-sized shared memory;
/// - `family = "name"`: the PTX the kernel belongs to; its entries exist if the feature `entries-name` is enabled;
/// - `hot`: the PTX lint allows no generic loads and stores in it.
///
/// `block`, `shared` and the others may use the function's generic parameters.
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
/// - Fields are views, numbers and structs that derive `KernelArgs` too. Other types
///   in them, also those of the elements of views, are written from the root of the crate (`crate::points::Points<'a, C>`), so
///   that kernels need not import them.
/// - A kernel imports the struct by `use`, which brings a macro of that name along. Fields are visible where the kernel is; a
///   `pub` struct may be taken by kernels of other crates.
/// - The lifetime of views is written `'_` in the kernel's signature.
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
