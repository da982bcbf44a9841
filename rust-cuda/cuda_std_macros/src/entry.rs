//! Entries: the functions that the driver finds in the PTX, each with a comment line that tells the builder about it.

use crate::kernel::{Kernel, substitute};
use crate::params::Param;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// One entry for a plain kernel, one an instance for a generic one; none on other targets than the GPU's. The entry takes
/// `params`, and `structs` are the statements that make the kernel's structs of them.
pub(crate) fn emit_all(kernel: &Kernel, params: &[Param], structs: &TokenStream) -> TokenStream {
    let entries: Vec<_> = if kernel.generics().is_empty() {
        vec![emit(kernel, params, structs, &[])]
    } else {
        kernel.instances.iter().map(|instance| emit(kernel, params, structs, instance)).collect()
    };
    let enabled = match &kernel.options.family {
        Some(family) => {
            let feature = format!("entries-{}", family.value());
            quote!(all(target_arch = "nvptx64", feature = #feature))
        }
        None => quote!(target_arch = "nvptx64"),
    };
    if entries.is_empty() {
        let axes =
            kernel.generics().iter().map(|name| format!("{name} = […]")).collect::<Vec<_>>().join(", ");
        let message = format!("a generic kernel without instances has no entry: add #[instances({axes})]");
        return quote!(#[cfg(#enabled)] ::core::compile_error!(#message););
    }
    quote! {
        #( #[cfg(#enabled)] const _: () = { #entries }; )*
    }
}

fn emit(kernel: &Kernel, params: &[Param], structs: &TokenStream, instance: &[TokenStream]) -> TokenStream {
    let Kernel { options, function, params: kernel_params, .. } = kernel;
    let arguments = kernel_params.iter().map(|param| &param.name);
    let generics = kernel.generics();
    let concrete = |tokens: TokenStream| substitute(tokens, &generics, instance);

    let base = &function.sig.ident;
    let name = kernel.entry_name(instance);

    let (mut declared, mut sizes, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for param in params {
        let (d, s, m) = param.entry();
        declared.extend(d.into_iter().map(&concrete));
        sizes.extend(s.into_iter().map(&concrete));
        let name = &param.name;
        made.push(quote!(let #name = unsafe { #m };));
    }

    let bound = |e: &Option<syn::Expr>| e.as_ref().map_or(quote!(0), |e| concrete(quote!((#e) as u32)));
    let (block, min_blocks, max_regs) =
        (bound(&options.block), bound(&options.min_blocks), bound(&options.max_regs));
    let shared =
        options.shared.as_ref().map_or(quote!(0), |t| concrete(quote!(::core::mem::size_of::<#t>())));
    let hot = u32::from(options.hot);
    let size_names: Vec<_> = (0..sizes.len()).map(|i| format_ident!("p{i}")).collect();
    let size_list = size_names.iter().map(|n| format!("{{{n}}}")).collect::<Vec<_>>().join(",");
    // The builder reads this line from the PTX; `kernel_info` in cuda_builder is its other half.
    let comment = format!(
        "// kauri.kernel name={name} block={{block}} min_blocks={{min_blocks}} max_regs={{max_regs}} \
         shared={{shared}} hot={hot} params={size_list}"
    );

    quote! {
        ::core::arch::global_asm!(
            #comment,
            block = const #block,
            min_blocks = const #min_blocks,
            max_regs = const #max_regs,
            shared = const #shared,
            #( #size_names = const #sizes, )*
        );

        #[allow(unused_unsafe)]
        #[unsafe(export_name = #name)]
        unsafe extern "ptx-kernel" fn entry(#(#declared),*) {
            #(#made)*
            #structs
            unsafe { #base::<#(#instance),*>(#(#arguments),*) }
        }
    }
}
