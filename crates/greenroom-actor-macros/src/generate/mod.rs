//! Generation of code from parsed blocks.

mod handlers;
mod references;
mod remote;
mod structs;

use proc_macro2::TokenStream;
use quote::quote;
use syn::Generics;

use crate::block::Block;
use crate::message::{Kind, Message};
use crate::message_generics;

pub(crate) fn all(block: &Block) -> TokenStream {
    let methods = &block.methods;
    let messages = block.messages.iter().map(|message| {
        let item = structs::one(block, message);
        let handler = handlers::one(block, message);
        quote!(#item #handler)
    });
    let references = references::of_actor(block);
    let remote = block.remote.iter().map(|remote| remote::all(block, remote));
    quote!(#methods #(#messages)* #references #(#remote)*)
}

fn generics(block: &Block, message: &Message) -> Generics {
    message_generics::of_fields(&block.generics, message.fields().map(|field| &field.ty))
}

/// Returns the message with its generics, as a type.
fn message_type(block: &Block, message: &Message) -> TokenStream {
    let name = &message.name;
    let generics = generics(block, message);
    let (_, arguments, _) = generics.split_for_impl();
    quote!(#name #arguments)
}

/// Returns the name of the type in `marker` that stands for the kind of handler.
fn marker(message: &Message) -> TokenStream {
    match message.kind {
        Kind::Async => quote!(Async),
        Kind::Reply => quote!(Reply),
        Kind::Sync => quote!(Sync),
    }
}

/// Returns the conditions under which the message exists.
fn conditions(block: &Block, message: &Message) -> TokenStream {
    let of_block = &block.conditions;
    let of_method = &message.shared.conditions;
    quote!(#(#of_block)* #(#of_method)*)
}

/// Allows deprecated names in generated code: a warning belongs only where the user wrote the name.
fn allow_deprecated(message: &Message) -> Option<TokenStream> {
    let deprecated = message.shared.deprecated.as_ref();
    deprecated.map(|_| quote!(#[allow(deprecated)]))
}
