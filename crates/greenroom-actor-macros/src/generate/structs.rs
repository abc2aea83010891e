//! Generation of the struct of a message.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::{conditions, generics, remote};
use crate::argument::Field;
use crate::attributes::docs_or;
use crate::block::Block;
use crate::message::Message;

pub(super) fn one(block: &Block, message: &Message) -> TokenStream {
    let conditions = conditions(block, message);
    let handled_by = format!("`{}::{}`", block.actor_name, message.method);
    let docs = docs_or(
        &message.shared.docs,
        &format!("The message of {handled_by}."),
    );
    let (derives, visibility, name) = (&message.derives, &message.visibility, &message.name);
    let derives = (!derives.is_empty()).then(|| quote!(#[derive(#(#derives),*)]));
    let codec = block
        .remote
        .as_ref()
        .map(|remote| remote::derives(remote, message));
    let fields: Vec<_> = message
        .fields()
        .map(|argument| field(argument, message, &handled_by))
        .collect();
    let generics = generics(block, message);
    let bounds = &generics.where_clause;
    let body = if fields.is_empty() {
        quote!(;)
    } else {
        quote!(#generics #bounds { #(#fields),* })
    };
    quote_spanned! { message.place()=>
        #conditions
        #(#docs)*
        #derives
        #codec
        #visibility struct #name #body
    }
}

fn field(argument: &Field, message: &Message, handled_by: &str) -> TokenStream {
    let Field {
        name,
        ty,
        docs,
        serde,
    } = argument;
    let docs = docs_or(docs, &format!("The argument `{name}` of {handled_by}."));
    let visibility = &message.visibility;
    quote_spanned!(message.place()=> #(#docs)* #(#serde)* #visibility #name: #ty)
}
