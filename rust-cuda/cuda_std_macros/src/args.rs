//! `#[derive(KernelArgs)]`, and how `#[kernel]` learns the fields of such a struct.
//!
//! A struct passed by value would turn every load through its views into a generic one, so an entry takes each field as a
//! parameter of its own. `#[kernel]` cannot see the fields. The derive therefore writes a macro that has the struct's name
//! and that calls [`flatten`] with the fields and with what `#[kernel]` gave it. [`flatten`] replaces one struct after
//! another, nested ones too, until only views and numbers are left.

use crate::entry;
use crate::kernel::{Kernel, generic_names, substitute};
use crate::params::{Param, Passing};
use proc_macro2::{Punct, Spacing, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericArgument, Generics, Ident, ItemFn, Path, PathArguments,
    Result, Token, Type, Visibility, WherePredicate, braced, parse_quote,
};

/// Implements `KernelArg` for the host, and writes the macro that names the fields for entries.
pub(crate) fn derive(input: TokenStream) -> Result<TokenStream> {
    let DeriveInput { ident, vis, generics, data, .. } = syn::parse2(input)?;
    let Data::Struct(data) = &data else {
        return Err(Error::new(ident.span(), "KernelArgs is derived for structs with named fields"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new(ident.span(), "the fields of a struct of kernel arguments need names"));
    };
    for field in &fields.named {
        Param::new(ident.clone(), &field.ty, &generics)?;
    }
    let names: Vec<_> = fields.named.iter().map(|field| &field.ident).collect();
    let types: Vec<_> = fields.named.iter().map(|field| &field.ty).collect();
    let (_, type_generics, _) = generics.split_for_impl();
    let mut bounded = generics.clone();
    let predicates = &mut bounded.make_where_clause().predicates;
    // Whether a struct without type parameters is `Copy` is checked here and now, which names the struct in the error.
    if generics.type_params().next().is_some() {
        predicates.push(parse_quote!(#ident #type_generics: Copy));
    }
    predicates.extend(
        types.iter().map(|ty| -> WherePredicate { parse_quote!(#ty: ::cuda_std::kernel::KernelArg) }),
    );
    let (impl_generics, _, where_clause) = bounded.split_for_impl();
    let (export, import) = match vis {
        // An exported macro is in the crate's root: the hash keeps structs of one name apart.
        Visibility::Public(_) => (quote!(#[macro_export]), quote!(pub)),
        _ => (quote!(), quote!(pub(crate))),
    };
    let fields_macro = format_ident!("__kernel_args_{ident}_{:x}", hash(&quote!(#fields).to_string()));
    let declared = &generics.params;
    let paths = types.iter().map(|ty| with_dollar_crate(quote!(#ty)));
    Ok(quote! {
        #[cfg(not(target_arch = "nvptx64"))]
        impl #impl_generics ::cuda_std::kernel::KernelArg for #ident #type_generics #where_clause {
            fn push(&self, params: &mut ::cuda_std::kernel::Params) {
                #( ::cuda_std::kernel::KernelArg::push(&self.#names, params); )*
            }
        }

        #[cfg(target_arch = "nvptx64")]
        #[doc(hidden)]
        #[allow(unused_macros)]
        #export
        macro_rules! #fields_macro {
            ($($kernel:tt)*) => {
                ::cuda_std::__kernel_entries! { { <#declared> #(#names: #paths,)* } $($kernel)* }
            };
        }
        #[cfg(target_arch = "nvptx64")]
        #[allow(unused_imports)]
        #import use #fields_macro as #ident;
    })
}

/// Writes `$crate` for `crate`, which a macro's caller in another crate would take for its own.
fn with_dollar_crate(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(ident) if ident == "crate" => {
                [Punct::new('$', Spacing::Alone).into(), ident.into()].to_vec()
            }
            other => vec![other],
        })
        .collect()
}

/// FNV-1a: the same in every build, so that builds are reproducible.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// A kernel whose parameters are being flattened.
struct Flattening {
    options: TokenStream,
    function: ItemFn,
    /// The entry's parameters so far.
    params: Vec<(Ident, Type)>,
    /// Statements that make the structs of their fields, the inner ones first.
    structs: TokenStream,
}

/// The fields of the first struct in the parameters of a kernel.
struct StructFields {
    generics: Generics,
    fields: Vec<(Ident, Type)>,
}

/// The entries of a kernel, or, if it takes structs, the first call of a struct's macro.
pub(crate) fn entries(options: TokenStream, function: ItemFn) -> Result<TokenStream> {
    let signature = &function.sig;
    let mut params = Vec::new();
    for arg in &signature.inputs {
        if let syn::FnArg::Typed(arg) = arg
            && let syn::Pat::Ident(name) = &*arg.pat
        {
            params.push((name.ident.clone(), (*arg.ty).clone()));
        }
    }
    Flattening { options, function, params, structs: TokenStream::new() }.next()
}

/// Replaces the first struct among the parameters by its fields, and goes on.
pub(crate) fn flatten(input: TokenStream) -> Result<TokenStream> {
    let (fields, kernel) = step.parse2(input)?;
    kernel.replace_first_struct(fields)?.next()
}

impl Flattening {
    /// Asks the first struct for its fields, or writes the entries if there is none.
    fn next(self) -> Result<TokenStream> {
        let Some((_, path)) = self.first_struct()? else {
            let Self { options, function, params, structs } = self;
            let generics = &function.sig.generics;
            let params = params
                .iter()
                .map(|(name, ty)| Param::new(name.clone(), ty, generics))
                .collect::<Result<Vec<_>>>()?;
            let kernel = Kernel::new(options, function)?;
            return Ok(entry::emit_all(&kernel, &params, &structs));
        };
        let macro_path = without_arguments(path.path);
        let Self { options, function, params, structs } = self;
        let (names, types): (Vec<_>, Vec<_>) = params.into_iter().unzip();
        Ok(quote! {
            #[cfg(target_arch = "nvptx64")]
            #macro_path! { { #options } { #(#names: #types,)* } { #structs } #function }
        })
    }

    /// The first parameter that is a struct, and its type.
    fn first_struct(&self) -> Result<Option<(usize, syn::TypePath)>> {
        for (i, (name, ty)) in self.params.iter().enumerate() {
            if let Passing::Struct(path) = Param::new(name.clone(), ty, &self.function.sig.generics)?.passing
            {
                return Ok(Some((i, path)));
            }
        }
        Ok(None)
    }

    fn replace_first_struct(mut self, StructFields { generics, fields }: StructFields) -> Result<Self> {
        let Some((i, path)) = self.first_struct()? else { return Ok(self) };
        let name = self.params[i].0.clone();
        let last = path.path.segments.last().expect("a path has a segment");
        let given: Vec<TokenStream> = match &last.arguments {
            PathArguments::AngleBracketed(given) => {
                let given = given.args.iter().filter(|a| !matches!(a, GenericArgument::Lifetime(_)));
                given.map(ToTokens::to_token_stream).collect()
            }
            _ => Vec::new(),
        };
        let declared = generic_names(&generics);
        if declared.len() != given.len() {
            return Err(Error::new(
                path.span(),
                format!("this struct has {} generic parameters, lifetimes not counted", declared.len()),
            ));
        }
        let literal = without_arguments(path.path);
        let mut flattened = Vec::new();
        let mut values = Vec::new();
        for (field, ty) in &fields {
            let flat = format_ident!("{name}_{field}");
            let ty: Type = syn::parse2(substitute(without_lifetimes(quote!(#ty)), &declared, &given))?;
            values.push(quote!(#field: #flat));
            flattened.push((flat, ty));
        }
        let others = &self.structs;
        self.structs = quote!(let #name = #literal { #(#values),* }; #others);
        self.params.splice(i..=i, flattened);
        Ok(self)
    }
}

/// Returns the path of a struct without its generic arguments.
fn without_arguments(mut path: Path) -> Path {
    path.segments.iter_mut().for_each(|segment| segment.arguments = PathArguments::None);
    path
}

/// `Slice<C>` of `Slice<'a, C>`: an entry has no lifetimes.
fn without_lifetimes(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut kept = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(p) if p.as_char() == '\'' => {
                tokens.next();
                tokens.next_if(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ','));
            }
            other => kept.extend([other]),
        }
    }
    kept
}

/// Reads one step: the fields of a struct, and the kernel that takes it.
fn step(input: ParseStream<'_>) -> Result<(StructFields, Flattening)> {
    let content;
    braced!(content in input);
    let fields = StructFields { generics: content.parse()?, fields: named_types(&content)? };
    let options;
    braced!(options in input);
    let options = options.parse()?;
    let params;
    braced!(params in input);
    let params = named_types(&params)?;
    let structs;
    braced!(structs in input);
    let structs = structs.parse()?;
    Ok((fields, Flattening { options, function: input.parse()?, params, structs }))
}

fn named_types(input: ParseStream<'_>) -> Result<Vec<(Ident, Type)>> {
    let fields = Punctuated::<Field, Token![,]>::parse_terminated_with(input, Field::parse_named)?;
    Ok(fields.into_iter().filter_map(|field| Some((field.ident?, field.ty))).collect())
}
