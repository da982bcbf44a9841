//! `#[kernel]`: reads the options and the function, and puts the function, its marker and its entries together.

use crate::{entry, marker, params::Param};
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Error, Expr, GenericParam, Ident, ItemFn, LitStr, Result, ReturnType, Token, Type};

/// The options in `#[kernel(…)]`.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) family: Option<LitStr>,
    pub(crate) block: Option<Expr>,
    pub(crate) min_blocks: Option<Expr>,
    pub(crate) max_regs: Option<Expr>,
    pub(crate) shared: Option<Type>,
    pub(crate) hot: bool,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name == "hot" {
                options.hot = true;
            } else {
                input.parse::<Token![=]>()?;
                match name.to_string().as_str() {
                    "family" => options.family = Some(input.parse()?),
                    "block" => options.block = Some(input.parse()?),
                    "min_blocks" => options.min_blocks = Some(input.parse()?),
                    "max_regs" => options.max_regs = Some(input.parse()?),
                    "shared" => options.shared = Some(input.parse()?),
                    _ => {
                        return Err(Error::new(
                            name.span(),
                            "expected family, block, min_blocks, max_regs, shared or hot",
                        ));
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

/// The kernel function and all that was said about it.
pub(crate) struct Kernel {
    pub(crate) options: Options,
    pub(crate) function: ItemFn,
    pub(crate) params: Vec<Param>,
    /// The generic arguments of each `#[instance(…)]`, as tokens.
    pub(crate) instances: Vec<Vec<TokenStream>>,
}

impl Kernel {
    /// Names of the generic parameters, in order.
    pub(crate) fn generics(&self) -> Vec<&Ident> {
        let params = self.function.sig.generics.params.iter();
        params
            .filter_map(|p| match p {
                GenericParam::Type(t) => Some(&t.ident),
                GenericParam::Const(c) => Some(&c.ident),
                GenericParam::Lifetime(_) => None,
            })
            .collect()
    }
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let kernel = parse(options, item)?;
    let function = device_inline(&kernel.function);
    let marker = marker::emit(&kernel);
    let entries = entry::emit_all(&kernel);
    Ok(quote! { #function #marker #entries })
}

fn parse(options: TokenStream, item: TokenStream) -> Result<Kernel> {
    let options: Options = syn::parse2(options)?;
    let mut function: ItemFn = syn::parse2(item)?;
    let signature = &function.sig;
    if signature.unsafety.is_none() {
        return Err(Error::new(
            signature.fn_token.span,
            "a kernel is an `unsafe fn`: only its launch can be right",
        ));
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        return Err(Error::new(ty.span(), "a kernel returns nothing"));
    }
    if let Some(lifetime) = signature.generics.lifetimes().next() {
        return Err(Error::new(lifetime.span(), "a kernel has no lifetime parameters"));
    }
    let params = signature.inputs.iter().map(Param::parse).collect::<Result<Vec<_>>>()?;
    let (instance_attrs, other_attrs): (Vec<Attribute>, Vec<Attribute>) =
        std::mem::take(&mut function.attrs).into_iter().partition(|a| a.path().is_ident("instance"));
    function.attrs = other_attrs;
    let instances = instance_attrs.iter().map(instance).collect::<Result<Vec<_>>>()?;

    let kernel = Kernel { options, function, params, instances };
    let count = kernel.generics().len();
    for (attr, instance) in instance_attrs.iter().zip(&kernel.instances) {
        if instance.len() != count || count == 0 {
            return Err(Error::new(attr.span(), format!("the kernel has {count} generic parameters")));
        }
    }
    Ok(kernel)
}

fn instance(attr: &Attribute) -> Result<Vec<TokenStream>> {
    let args = attr.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated);
    // A type such as `f32` also parses as a path expression.
    Ok(args?.iter().map(|arg| quote!(#arg)).collect())
}

/// The function itself: inlined into its entry on the GPU, and left alone elsewhere.
fn device_inline(function: &ItemFn) -> TokenStream {
    quote! {
        #[cfg_attr(target_arch = "nvptx64", inline(always))]
        #[allow(unsafe_op_in_unsafe_fn, clippy::missing_safety_doc, clippy::too_many_arguments)]
        #function
    }
}
