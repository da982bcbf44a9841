//! Entries: the functions that the driver finds in the PTX, each with a comment line that tells the builder about it.

use crate::kernel::{Kernel, Options};
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};

/// One entry for a plain kernel, one an instance for a generic one; none on other targets than the GPU's.
pub(crate) fn emit_all(kernel: &Kernel) -> TokenStream {
    let entries = if kernel.generics().is_empty() {
        vec![emit(kernel, &[])]
    } else {
        kernel.instances.iter().map(|arguments| emit(kernel, arguments)).collect()
    };
    let enabled = match &kernel.options.family {
        Some(family) => {
            let feature = format!("entries-{}", family.value());
            quote!(all(target_arch = "nvptx64", feature = #feature))
        }
        None => quote!(target_arch = "nvptx64"),
    };
    let options_used = use_options(kernel);
    quote! {
        #( #[cfg(#enabled)] const _: () = { #entries }; )*
        #options_used
    }
}

/// Names the options where no entry does, so that what they import counts as used.
fn use_options(kernel: &Kernel) -> TokenStream {
    let Options { block, min_blocks, max_regs, shared, .. } = &kernel.options;
    let numbers = [block, min_blocks, max_regs].into_iter().flatten();
    let generics = &kernel.function.sig.generics;
    let (declared, bounds) = (&generics.params, &generics.where_clause);
    let shared = shared.iter();
    quote! {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            fn _options<#declared>() #bounds {
                #( let _ = #numbers; )*
                #( let _ = ::core::mem::size_of::<#shared>(); )*
            }
        };
    }
}

fn emit(kernel: &Kernel, arguments: &[TokenStream]) -> TokenStream {
    let Kernel { options, function, params, .. } = kernel;
    let generics = kernel.generics();
    let concrete = |tokens: TokenStream| substitute(tokens, &generics, arguments);

    let base = &function.sig.ident;
    let name = arguments.iter().fold(base.to_string(), |name, a| format!("{name}_{}", last_segment(a)));

    let (mut declared, mut sizes, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for param in params {
        let (d, s, m) = param.entry();
        declared.extend(d.into_iter().map(&concrete));
        sizes.extend(s.into_iter().map(&concrete));
        made.push(concrete(m));
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

        #[unsafe(export_name = #name)]
        unsafe extern "ptx-kernel" fn entry(#(#declared),*) {
            unsafe { #base::<#(#arguments),*>(#(#made),*) }
        }
    }
}

/// `f32` of `f32`, `Sum` of `crate::ops::Sum`: what the marker's name has for the same argument.
fn last_segment(argument: &TokenStream) -> String {
    let text = argument.to_string();
    text.rsplit("::").next().unwrap_or(&text).trim().to_string()
}

/// Replaces the names of generic parameters by the arguments of an instance.
fn substitute(tokens: TokenStream, generics: &[&Ident], arguments: &[TokenStream]) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(ident) => match generics.iter().position(|g| **g == ident) {
                Some(i) => arguments[i].clone(),
                None => TokenTree::Ident(ident).into(),
            },
            TokenTree::Group(group) => {
                let mut inner =
                    Group::new(group.delimiter(), substitute(group.stream(), generics, arguments));
                inner.set_span(group.span());
                TokenTree::Group(inner).into()
            }
            other => other.into(),
        })
        .collect()
}
