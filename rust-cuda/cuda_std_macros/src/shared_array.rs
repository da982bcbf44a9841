//! The work of `shared_array!`: a static array of shared memory, as a view.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Result, Token, Type};

struct Array {
    element: Type,
    len: Expr,
}

impl Parse for Array {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let element = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Self { element, len: input.parse()? })
    }
}

pub(crate) fn expand(input: TokenStream) -> Result<TokenStream> {
    let Array { element, len } = syn::parse2(input)?;
    let symbol = unique_symbol();
    // Module-scope .shared memory, reached by its distance from the launch-sized region: so the compiler still knows the
    // address space, which it does not for an address that assembly returns.
    let declaration = format!(".shared .align {{a}} .b8 {symbol}[{{n}}];");
    let distance = format!(
        "{{{{ .reg .b32 x, y; mov.b32 x, {symbol}; mov.b32 y, gpu_launch_sized_workgroup_mem; sub.s32 {{o}}, x, y; }}}}"
    );
    Ok(quote! {{
        #[cfg(target_arch = "nvptx64")]
        let array = {
            ::core::arch::global_asm!(
                #declaration,
                a = const ::core::mem::align_of::<#element>(),
                n = const ::core::mem::size_of::<[#element; #len]>(),
            );
            let distance: i32;
            // SAFETY: computes a number.
            unsafe {
                ::core::arch::asm!(
                    #distance,
                    o = out(reg32) distance,
                    options(pure, nomem, nostack, preserves_flags),
                )
            };
            // SAFETY: only the address of the region is taken.
            let region = unsafe { ::cuda_std::shared::dynamic_shared_mem::<[#element; #len]>() };
            region.wrapping_byte_offset(distance as isize)
        };
        #[cfg(not(target_arch = "nvptx64"))]
        let array = {
            static KEY: u8 = 0;
            let bytes = ::core::mem::size_of::<[#element; #len]>();
            ::cuda_std::sys::shared_region(&raw const KEY as usize, bytes, ::core::mem::align_of::<#element>())
                .cast::<[#element; #len]>()
        };
        ::cuda_std::shared::view(array)
    }})
}

/// Module-scope symbols must differ across all crates that land in one PTX: the macro's place, this compiler process
/// (one a crate) and a counter tell arrays apart.
fn unique_symbol() -> String {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let mut hasher = DefaultHasher::new();
    format!("{:?}", Span::call_site()).hash(&mut hasher);
    for variable in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION", "CARGO_CRATE_NAME"] {
        std::env::var(variable).unwrap_or_default().hash(&mut hasher);
    }
    format!("shared_array_{:016x}_{}", hasher.finish(), COUNTER.fetch_add(1, Ordering::Relaxed))
}
