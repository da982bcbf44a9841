//! Parameters of a kernel function: what the entry takes for each, and what the host gives.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, Generics, Ident, Pat, PathArguments, PointerMutability, Result, Type,
    TypePath,
};

/// How a parameter is passed.
pub(crate) enum Passing {
    /// `Slice<T>`: pointer and length.
    Slice(Type),
    /// `SliceMut<T>`: pointer and length.
    SliceMut(Type),
    /// `&[T]`: pointer and length.
    Reference(Type),
    /// `*const T`.
    ConstPointer(Type),
    /// `*mut T`.
    MutPointer(Type),
    /// A number.
    Scalar(Type),
    /// A struct with `#[derive(KernelArgs)]`: each of its fields, by that field's own passing.
    Struct(TypePath),
}

/// One parameter.
pub(crate) struct Param {
    pub(crate) name: Ident,
    pub(crate) passing: Passing,
}

impl Param {
    /// Reads a parameter of a function with these generic parameters.
    pub(crate) fn parse(arg: &FnArg, generics: &Generics) -> Result<Self> {
        let FnArg::Typed(arg) = arg else {
            return Err(Error::new(arg.span(), "a kernel is a free function"));
        };
        let Pat::Ident(name) = &*arg.pat else {
            return Err(Error::new(arg.pat.span(), "a kernel parameter is a name"));
        };
        Self::new(name.ident.clone(), &arg.ty, generics)
    }

    pub(crate) fn new(name: Ident, ty: &Type, generics: &Generics) -> Result<Self> {
        Ok(Self { name, passing: Passing::parse(ty, generics)? })
    }

    /// The entry's parameters, the byte size of each, and the expression that makes the function's argument of them.
    pub(crate) fn entry(&self) -> (Vec<TokenStream>, Vec<TokenStream>, TokenStream) {
        let name = &self.name;
        let length = format_ident!("{name}_len");
        let view = |t: &Type, pointer: TokenStream, make: TokenStream| {
            let declared = vec![quote!(#name: #pointer #t), quote!(#length: usize)];
            (declared, vec![quote!(8), quote!(8)], quote!(#make(#name, #length)))
        };
        match &self.passing {
            Passing::Slice(t) => view(t, quote!(*const), quote!(::cuda_std::mem::Slice::from_raw_parts)),
            Passing::SliceMut(t) => view(t, quote!(*mut), quote!(::cuda_std::mem::SliceMut::from_raw_parts)),
            Passing::Reference(t) => view(t, quote!(*const), quote!(::core::slice::from_raw_parts)),
            Passing::ConstPointer(t) => (vec![quote!(#name: *const #t)], vec![quote!(8)], quote!(#name)),
            Passing::MutPointer(t) => (vec![quote!(#name: *mut #t)], vec![quote!(8)], quote!(#name)),
            Passing::Scalar(t) => {
                (vec![quote!(#name: #t)], vec![quote!(::core::mem::size_of::<#t>())], quote!(#name))
            }
            Passing::Struct(_) => unreachable!("structs are flattened before entries are written"),
        }
    }

    /// The type of the host's argument, with lifetime `'a`.
    pub(crate) fn host_type(&self) -> TokenStream {
        match &self.passing {
            Passing::Slice(t) | Passing::Reference(t) | Passing::ConstPointer(t) => {
                quote!(::cuda_std::mem::Slice<'a, #t>)
            }
            Passing::SliceMut(t) | Passing::MutPointer(t) => quote!(::cuda_std::mem::SliceMut<'a, #t>),
            Passing::Scalar(t) => quote!(#t),
            Passing::Struct(t) => with_lifetime_a(quote!(#t)),
        }
    }

    /// The statement that appends the host's argument to the launch parameters.
    pub(crate) fn push(&self) -> TokenStream {
        let name = &self.name;
        match &self.passing {
            Passing::ConstPointer(_) | Passing::MutPointer(_) => {
                quote!(::cuda_std::kernel::push_pointer(#name.as_ptr(), params);)
            }
            _ => quote!(::cuda_std::kernel::KernelArg::push(#name, params);),
        }
    }

    /// The function's argument made of the host's, for a simulated call.
    pub(crate) fn call(&self) -> TokenStream {
        let name = &self.name;
        match &self.passing {
            Passing::Reference(_) => quote!(#name.as_slice()),
            Passing::ConstPointer(_) | Passing::MutPointer(_) => quote!(#name.as_ptr()),
            _ => quote!(*#name),
        }
    }
}

impl Passing {
    fn parse(ty: &Type, generics: &Generics) -> Result<Self> {
        match ty {
            Type::Path(path) => {
                let Some(last) = path.path.segments.last() else { return Ok(Self::Scalar(ty.clone())) };
                match last.ident.to_string().as_str() {
                    "Slice" => Ok(Self::Slice(element(&last.arguments, ty)?)),
                    "SliceMut" => Ok(Self::SliceMut(element(&last.arguments, ty)?)),
                    name if is_number(name) || is_generic(path, generics) => Ok(Self::Scalar(ty.clone())),
                    _ => Ok(Self::Struct(path.clone())),
                }
            }
            Type::Ptr(pointer) if matches!(pointer.mutability, PointerMutability::Mut(_)) => {
                Ok(Self::MutPointer((*pointer.elem).clone()))
            }
            Type::Ptr(pointer) => Ok(Self::ConstPointer((*pointer.elem).clone())),
            Type::Reference(reference) => match &*reference.elem {
                Type::Slice(slice) if reference.mutability.is_none() => {
                    Ok(Self::Reference((*slice.elem).clone()))
                }
                _ => Err(Error::new(ty.span(), TAKES)),
            },
            _ => Err(Error::new(ty.span(), TAKES)),
        }
    }
}

const TAKES: &str = "a kernel takes Slice<T> or &[T], SliceMut<T>, pointers, numbers, and structs of these that \
                     derive KernelArgs";

fn is_number(name: &str) -> bool {
    matches!(
        name,
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" | "f32" | "f64"
    )
}

/// Returns true for a type parameter and for an associated type of one.
fn is_generic(path: &TypePath, generics: &Generics) -> bool {
    path.qself.is_some()
        || path
            .path
            .segments
            .first()
            .is_some_and(|first| generics.type_params().any(|t| t.ident == first.ident))
}

/// Replaces the elided lifetime `'_` by `'a`.
fn with_lifetime_a(tokens: TokenStream) -> TokenStream {
    let mut is_lifetime = false;
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Ident(ident) if is_lifetime && ident == "_" => {
                is_lifetime = false;
                TokenTree::Ident(Ident::new("a", ident.span()))
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), with_lifetime_a(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => {
                is_lifetime = matches!(&other, TokenTree::Punct(p) if p.as_char() == '\'');
                other
            }
        })
        .collect()
}

fn element(arguments: &PathArguments, ty: &Type) -> Result<Type> {
    if let PathArguments::AngleBracketed(arguments) = arguments {
        let mut types = arguments.args.iter().filter_map(|a| match a {
            GenericArgument::Type(t) => Some(t.clone()),
            _ => None,
        });
        if let (Some(t), None) = (types.next(), types.next()) {
            return Ok(t);
        }
    }
    Err(Error::new(ty.span(), "expected one element type"))
}
