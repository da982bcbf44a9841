//! The macros of `cuda_std`: `#[kernel]` and the work behind `shared_array!`. Documented there.

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
/// #[instance(f32, 2)]
/// #[instance(f64, 3)]
/// pub unsafe fn kdtree_nearest<C: Coord, const D: usize>(points: Slice<C>, ids: SliceMut<u32>, n: u32) {}
/// ```
///
/// On the GPU target it emits an entry (for a generic kernel one an `#[instance]`, named by the function and its generic
/// arguments: `kdtree_nearest_f32_2`). On any other target nothing but the function and a type of the same name, the
/// *marker*, by which the host launches the kernel with checked arguments.
///
/// Parameters: `Slice<T>`, `SliceMut<T>`, `&[T]` (two scalars each: pointer, length), `*const T`, `*mut T`, and numbers.
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

#[doc(hidden)]
#[proc_macro]
pub fn __shared_array(input: TokenStream) -> TokenStream {
    shared_array::expand(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
