//! Tests of the text that the macros write, and of the kernels that they refuse.

use crate::{args, kernel, shared_array};
use proc_macro2::TokenStream;
use quote::quote;

/// Expands `#[kernel]`; returns the text without spaces.
fn expanded(options: TokenStream, item: TokenStream) -> Result<String, String> {
    let tokens = kernel::expand(options, item).map_err(|error| error.to_string())?;
    syn::parse2::<syn::File>(tokens.clone()).expect("the macro writes items");
    Ok(tokens.to_string().replace(char::is_whitespace, ""))
}

#[test]
fn a_kernel_has_an_entry_with_its_scalars() {
    let options = quote!(block = 256, min_blocks = 2, hot);
    let text = expanded(
        options,
        quote!(
            pub unsafe fn saxpy(a: f32, x: Slice<f32>, y: SliceMut<f32>) {}
        ),
    )
    .unwrap();
    assert!(text.contains("export_name=\"saxpy\""), "{text}");
    // A number, and two scalars for each view.
    assert!(text.contains("hot=1params={p0},{p1},{p2},{p3},{p4}"), "{text}");
    assert!(text.contains("block=const(256)asu32,min_blocks=const(2)asu32,max_regs=const0"), "{text}");
    assert!(text.contains("structsaxpy"), "no marker: {text}");
}

#[test]
fn an_instance_has_an_entry() {
    let text = expanded(
        quote!(family = "sorts"),
        quote!(
            #[instances(T = [u32, f32], N = [2, 3])]
            #[instance(crate::Wide, 4)]
            unsafe fn sort<T: Copy, const N: usize>(x: SliceMut<T>) {}
        ),
    )
    .unwrap();
    let names = text.split("export_name=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["sort_u32_2", "sort_u32_3", "sort_f32_2", "sort_f32_3", "sort_Wide_4"]);
    assert!(text.contains("feature=\"entries-sorts\""), "{text}");
    assert!(text.contains("sort::<f32,3>"), "{text}");
}

#[test]
fn refused_kernels() {
    for (options, item, expected) in [
        (
            quote!(),
            quote!(
                fn k(n: u32) {}
            ),
            "a kernel is an `unsafe fn`",
        ),
        (
            quote!(),
            quote!(
                unsafe fn k(n: u32) -> u32 {
                    n
                }
            ),
            "a kernel returns nothing",
        ),
        (
            quote!(),
            quote!(
                unsafe fn k<'a>(x: Slice<'a, u32>) {}
            ),
            "no lifetime parameters",
        ),
        (
            quote!(),
            quote!(
                unsafe fn k(x: &mut [u32]) {}
            ),
            "a kernel takes Slice<T>",
        ),
        (
            quote!(threads = 64),
            quote!(
                unsafe fn k() {}
            ),
            "expected family, block",
        ),
        (
            quote!(),
            quote!(
                #[instance(u32, 2)]
                unsafe fn k<T>(x: Slice<T>) {}
            ),
            "the kernel has 1 generic parameters",
        ),
        (
            quote!(),
            quote!(
                #[instances(N = [2])]
                unsafe fn k<T>(x: Slice<T>) {}
            ),
            "expected #[instances(T = […])]",
        ),
        (
            quote!(),
            quote!(
                #[instances(T = [])]
                unsafe fn k<T>(x: Slice<T>) {}
            ),
            "expected a list of values",
        ),
        (
            quote!(),
            quote!(
                #[instances(T = [u8, u8])]
                unsafe fn k<T>(x: Slice<T>) {}
            ),
            "(u8) is there twice",
        ),
    ] {
        let error = expanded(options, item.clone()).expect_err(&item.to_string());
        assert!(error.contains(expected), "{error}");
    }
    // Only where there would be an entry: generic kernels without instances serve the simulator.
    let text = expanded(
        quote!(),
        quote!(
            unsafe fn k<T>(x: Slice<T>) {}
        ),
    )
    .unwrap();
    assert!(text.contains("compile_error!"), "{text}");
}

#[test]
fn structs_of_arguments() {
    let derive = |item| args::derive(item).map(|tokens| tokens.to_string().replace(char::is_whitespace, ""));
    let text = derive(quote!(
        struct Points<'a> {
            coords: Slice<'a, f32>,
            dims: u32,
        }
    ))
    .unwrap();
    assert!(text.contains("macro_rules!") && text.contains("asPoints;"), "{text}");
    assert!(text.contains("KernelArgforPoints<'a>"), "{text}");
    for (item, expected) in [
        (
            quote!(
                enum Points {
                    None,
                }
            ),
            "structs with named fields",
        ),
        (
            quote!(
                struct Points(u32);
            ),
            "need names",
        ),
        (
            quote!(
                struct Points {
                    x: [u32; 2],
                }
            ),
            "a kernel takes Slice<T>",
        ),
    ] {
        assert!(derive(item).unwrap_err().to_string().contains(expected), "{expected}");
    }
}

#[test]
fn each_shared_array_has_its_symbol() {
    let symbol = || {
        let text = shared_array::expand(quote!(u32; 64)).unwrap().to_string();
        text.split(".b8 ").nth(1).and_then(|rest| rest.split('[').next()).unwrap().to_owned()
    };
    let (first, second) = (symbol(), symbol());
    assert!(first.starts_with("shared_array_") && first != second, "{first} {second}");
    assert!(shared_array::expand(quote!(u32)).is_err());
}
