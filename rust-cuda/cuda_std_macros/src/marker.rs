//! The marker: a type with the kernel's name and generics, by which the host launches it.

use crate::kernel::Kernel;
use proc_macro2::TokenStream;
use quote::quote;
use syn::GenericParam;

pub(crate) fn emit(kernel: &Kernel) -> TokenStream {
    let Kernel { options, function, params, .. } = kernel;
    let (name, vis) = (&function.sig.ident, &function.vis);
    let generics = &function.sig.generics;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let (declared, bounds) = (&generics.params, &generics.where_clause);

    let type_params: Vec<_> = generics.type_params().map(|t| &t.ident).collect();
    let host_types: Vec<_> = params.iter().map(|p| p.host_type()).collect();
    let names: Vec<_> = params.iter().map(|p| &p.name).collect();
    let pushes: Vec<_> = params.iter().map(|p| p.push()).collect();
    let calls: Vec<_> = params.iter().map(|p| p.call()).collect();
    let arguments = kernel.generics();

    let name_parts = generics.params.iter().map(|p| match p {
        GenericParam::Type(t) => {
            let t = &t.ident;
            quote!(::cuda_std::kernel::push_type_name::<#t>(&mut name);)
        }
        GenericParam::Const(c) => {
            let c = &c.ident;
            quote!(::cuda_std::kernel::push_const(&mut name, #c);)
        }
        GenericParam::Lifetime(_) => TokenStream::new(),
    });
    let base = name.to_string();
    let entries = kernel.entry_names();
    let family = options.family.as_ref().map_or(quote!(""), |f| quote!(#f));
    let number = |e: &Option<syn::Expr>| e.as_ref().map_or(quote!(0), |e| quote!((#e) as u32));
    let (block, min_blocks, max_regs) =
        (number(&options.block), number(&options.min_blocks), number(&options.max_regs));
    let shared = options.shared.as_ref().map_or(quote!(0), |t| quote!(::core::mem::size_of::<#t>()));
    let doc = format!("Launches the kernel [`{base}`](fn@{base}).");

    quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        #[doc = #doc]
        #[allow(non_camel_case_types, missing_debug_implementations)]
        #vis struct #name<#declared> #bounds {
            _generics: ::core::marker::PhantomData<fn() -> (#(#type_params,)*)>,
        }

        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            extern crate std;

            impl #impl_generics ::cuda_std::kernel::Kernel for #name #type_generics #where_clause {
                type Args<'a> = (#(#host_types,)*);
                const BLOCK: u32 = #block;
                const MIN_BLOCKS: u32 = #min_blocks;
                const MAX_REGS: u32 = #max_regs;
                const SHARED_BYTES: usize = #shared;
                const FAMILY: &'static str = #family;
                const ENTRIES: &'static [&'static str] = &[#(#entries),*];

                #[inline]
                fn name() -> std::string::String {
                    #[allow(unused_mut)]
                    let mut name = std::string::String::from(#base);
                    #(#name_parts)*
                    name
                }

                #[inline]
                #[allow(unused_variables)]
                fn push((#(#names,)*): &Self::Args<'_>, params: &mut ::cuda_std::kernel::Params) {
                    #(#pushes)*
                }

                #[inline]
                unsafe fn call((#(#names,)*): &Self::Args<'_>) {
                    // SAFETY: passed on to the caller.
                    unsafe { #name::<#(#arguments),*>(#(#calls),*) }
                }
            }
        };
    }
}
