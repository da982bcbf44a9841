//! `#[kernel]`: reads the options and the function, and puts the function, its marker and its entries together.

use crate::{args, marker, params::Param};
use proc_macro2::{Group, TokenStream, TokenTree};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, Expr, ExprArray, GenericParam, Generics, Ident, ItemFn, LitStr, Result, ReturnType,
    Safety, Token, Type,
};

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
    /// The generic arguments of each instance, as tokens.
    pub(crate) instances: Vec<Vec<TokenStream>>,
}

impl Kernel {
    /// Reads a kernel from the tokens of its options and from its function.
    pub(crate) fn new(options: TokenStream, mut function: ItemFn) -> Result<Self> {
        let options: Options = syn::parse2(options)?;
        let signature = &function.sig;
        if !matches!(signature.safety, Safety::Unsafe(_)) {
            return Err(Error::new(
                signature.fn_token.span,
                "a kernel is an `unsafe fn`: whether it is safe depends on the launch",
            ));
        }
        if let ReturnType::Type(_, ty) = &signature.output {
            return Err(Error::new(ty.span(), "a kernel returns nothing"));
        }
        if let Some(lifetime) = signature.generics.lifetimes().next() {
            return Err(Error::new(lifetime.span(), "a kernel has no lifetime parameters"));
        }
        let params = signature.inputs.iter().map(|input| Param::parse(input, &signature.generics));
        let params = params.collect::<Result<Vec<_>>>()?;
        let (instance_attrs, other_attrs) = std::mem::take(&mut function.attrs)
            .into_iter()
            .partition(|a| a.path().is_ident("instance") || a.path().is_ident("instances"));
        function.attrs = other_attrs;
        let mut kernel = Self { options, function, params, instances: Vec::new() };
        kernel.instances = kernel.read_instances(instance_attrs)?;
        Ok(kernel)
    }

    /// The generic arguments of all `#[instance(…)]` and `#[instances(…)]`.
    fn read_instances(&self, attrs: Vec<Attribute>) -> Result<Vec<Vec<TokenStream>>> {
        let generics = self.generics();
        let mut instances: Vec<Vec<TokenStream>> = Vec::new();
        for attr in attrs {
            let read = if attr.path().is_ident("instances") {
                instances_of_axes(&attr, &generics)?
            } else {
                vec![instance(&attr, generics.len())?]
            };
            for instance in read {
                if instances
                    .iter()
                    .any(|other| quote!(#(#other),*).to_string() == quote!(#(#instance),*).to_string())
                {
                    let instance = quote!(#(#instance),*);
                    return Err(Error::new(attr.span(), format!("the instance ({instance}) is there twice")));
                }
                instances.push(instance);
            }
        }
        Ok(instances)
    }

    /// Names the options where no entry does, so that their imports count as used.
    fn use_options(&self) -> TokenStream {
        let Options { block, min_blocks, max_regs, shared, .. } = &self.options;
        let numbers = [block, min_blocks, max_regs].into_iter().flatten();
        let generics = &self.function.sig.generics;
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

    /// Name of the entry of an instance.
    pub(crate) fn entry_name(&self, instance: &[TokenStream]) -> String {
        let base = self.function.sig.ident.to_string();
        instance.iter().fold(base, |name, argument| format!("{name}_{}", last_segment(argument)))
    }

    /// Names of all entries.
    pub(crate) fn entry_names(&self) -> Vec<String> {
        if self.generics().is_empty() {
            return vec![self.entry_name(&[])];
        }
        self.instances.iter().map(|instance| self.entry_name(instance)).collect()
    }

    /// Names of the generic parameters, in order.
    pub(crate) fn generics(&self) -> Vec<&Ident> {
        generic_names(&self.function.sig.generics)
    }
}

/// `f32` of `f32`, `Sum` of `crate::ops::Sum`: what the marker's name has for the same argument.
fn last_segment(argument: &TokenStream) -> String {
    let text = argument.to_string();
    text.rsplit("::").next().unwrap_or(&text).trim().to_string()
}

/// Names of the type and const parameters, in order.
pub(crate) fn generic_names(generics: &Generics) -> Vec<&Ident> {
    let params = generics.params.iter();
    params
        .filter_map(|param| match param {
            GenericParam::Type(t) => Some(&t.ident),
            GenericParam::Const(c) => Some(&c.ident),
            GenericParam::Lifetime(_) => None,
        })
        .collect()
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let item: ItemFn = syn::parse2(item)?;
    let kernel = Kernel::new(options.clone(), item.clone())?;
    let function = device_inline(&kernel.function);
    let marker = marker::emit(&kernel);
    let options_used = kernel.use_options();
    let entries = args::entries(options, item)?;
    Ok(quote! {
        #function
        #marker
        #options_used
        #entries
    })
}

/// The generic arguments of `#[instance(f32, 2)]`.
fn instance(attr: &Attribute, num_generics: usize) -> Result<Vec<TokenStream>> {
    let arguments = attr.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated)?;
    if arguments.len() != num_generics || num_generics == 0 {
        return Err(Error::new(attr.span(), format!("the kernel has {num_generics} generic parameters")));
    }
    // A type such as `f32` also parses as a path expression.
    Ok(arguments.iter().map(|argument| quote!(#argument)).collect())
}

/// One axis of `#[instances(C = [f32, f64], D = [2, 3])]`.
struct Axis {
    name: Ident,
    values: ExprArray,
}

impl Parse for Axis {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        let expected = format!("expected a list of values: {name} = […]");
        let values: ExprArray = input.parse().map_err(|error| Error::new(error.span(), &expected))?;
        if values.elems.is_empty() {
            return Err(Error::new(name.span(), expected));
        }
        Ok(Self { name, values })
    }
}

/// The product of the axes, in the order of the generic parameters.
fn instances_of_axes(attr: &Attribute, generics: &[&Ident]) -> Result<Vec<Vec<TokenStream>>> {
    let axes = attr.parse_args_with(Punctuated::<Axis, Token![,]>::parse_terminated)?;
    if axes.len() != generics.len() || axes.iter().zip(generics).any(|(axis, generic)| axis.name != **generic)
    {
        let expected = generics.iter().map(|g| format!("{g} = […]")).collect::<Vec<_>>().join(", ");
        return Err(Error::new(attr.span(), format!("expected #[instances({expected})]")));
    }
    let mut product = vec![Vec::new()];
    for axis in &axes {
        product = product
            .iter()
            .flat_map(|head: &Vec<TokenStream>| {
                axis.values.elems.iter().map(move |value| [head.as_slice(), &[quote!(#value)]].concat())
            })
            .collect();
    }
    Ok(product)
}

/// Replaces the names of generic parameters by arguments.
pub(crate) fn substitute(tokens: TokenStream, generics: &[&Ident], arguments: &[TokenStream]) -> TokenStream {
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

/// The function itself: inlined into its entry on the GPU. On the CPU, only a crate that calls it compiles it.
fn device_inline(function: &ItemFn) -> TokenStream {
    quote! {
        #[cfg_attr(target_arch = "nvptx64", inline(always))]
        #[cfg_attr(not(target_arch = "nvptx64"), inline)]
        #[allow(unsafe_op_in_unsafe_fn, clippy::missing_safety_doc, clippy::too_many_arguments)]
        #function
    }
}
