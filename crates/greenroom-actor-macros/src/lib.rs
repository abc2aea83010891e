//! The attribute [`#[messages]`](macro@messages) of greenroom-actor, which re-exports it. Depend on
//! that crate, or on `greenroom`, and not on this one.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod argument;
mod attributes;
mod block;
mod errors;
mod generate;
mod message;
mod message_generics;
mod options;
mod owned;
#[cfg(test)]
mod rejections;
mod remote;
mod root;
mod self_type;
#[cfg(test)]
mod taken;
mod visibility;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Item, ItemImpl, Path};

use block::Block;
use options::BlockOptions;

#[doc = include_str!("docs/messages.md")]
#[proc_macro_attribute]
pub fn messages(
    options: proc_macro::TokenStream,
    block: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand_or_report(&root::of_actor(), options.into(), block.into()).into()
}

/// The attribute [`macro@messages`] for users of `greenroom::actor`, which re-exports it as
/// `greenroom::actor::messages`.
#[proc_macro_attribute]
pub fn greenroom_messages(
    options: proc_macro::TokenStream,
    block: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand_or_report(&root::of_greenroom(), options.into(), block.into()).into()
}

/// Expands the block. In case of errors it returns the methods too, so that no error follows from
/// their absence.
fn expand_or_report(root: &Path, options: TokenStream, block: TokenStream) -> TokenStream {
    let methods = block.clone();
    expand(root, options, block).unwrap_or_else(|error| {
        let error = error.into_compile_error();
        let methods = without_marks(methods);
        quote!(#error #methods)
    })
}

/// Returns the methods as they were, and the code that makes messages of them. `root` is the path
/// of greenroom-actor if the options name no other.
fn expand(root: &Path, options: TokenStream, block: TokenStream) -> syn::Result<TokenStream> {
    let options = BlockOptions::parse(options)?;
    let item = syn::parse2(block)?;
    let Item::Impl(methods) = item else {
        let text = "`#[messages]` belongs on an `impl` block of an actor: `impl Counter { .. }`";
        return Err(syn::Error::new_spanned(item, text));
    };
    let block = Block::parse(root, options, methods)?;
    Ok(generate::all(&block))
}

fn without_marks(block: TokenStream) -> TokenStream {
    let Ok(mut methods) = syn::parse2::<ItemImpl>(block.clone()) else {
        return block;
    };
    for method in block::methods_mut(&mut methods) {
        attributes::remove_marks(method);
    }
    quote!(#methods)
}
