//! Generation of the methods of the actor's reference.

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};

use super::{allow_deprecated, conditions, message_type};
use crate::attributes::docs_or;
use crate::block::Block;
use crate::message::{Kind, Message, place};
use crate::visibility::Reach;

/// Generates one trait for each visibility: a trait that is more visible than one of its messages
/// would let others send it.
pub(super) fn all(block: &Block) -> TokenStream {
    let mut by_reach = BTreeMap::<Reach, Vec<&Message>>::new();
    for message in &block.messages {
        by_reach.entry(message.reach).or_default().push(message);
    }
    let widest = by_reach.keys().last().copied();
    let traits = by_reach.iter().map(|(reach, messages)| {
        let name = if widest == Some(*reach) {
            block.trait_name.clone()
        } else {
            format_ident!("{}{}", reach.prefix(), block.trait_name)
        };
        one(block, &name, messages)
    });
    quote!(#(#traits)*)
}

fn one(block: &Block, name: &Ident, messages: &[&Message]) -> TokenStream {
    let Block {
        root,
        actor,
        conditions,
        ..
    } = block;
    let visibility = messages.first().map(|message| &message.visibility);
    let (generics, arguments, bounds) = block.generics.split_for_impl();
    let docs = format!(
        "The messages of `{}`, as methods of its `ActorRef`: each gives a `Call`, to tell, to send \
         or to ask.",
        block.actor_name
    );
    let declared = messages.iter().map(|message| declaration(block, message));
    let defined = messages.iter().map(|message| definition(block, message));
    quote_spanned! { place(&block.actor_name)=>
        #(#conditions)*
        #[doc = #docs]
        #visibility trait #name #generics #bounds {
            #(#declared)*
        }

        #(#conditions)*
        #[automatically_derived]
        impl #generics #name #arguments for #root::ActorRef<#actor> #bounds {
            #(#defined)*
        }
    }
}

fn declaration(block: &Block, message: &Message) -> TokenStream {
    let conditions = conditions(block, message);
    let shared = &message.shared;
    let docs = docs_or(
        &shared.docs,
        &format!("Gives the message `{}`.", message.name),
    );
    let (allowed, deprecated) = (&shared.allowed, &shared.deprecated);
    let signature = signature(block, message);
    quote_spanned!(message.place()=> #conditions #(#docs)* #(#allowed)* #deprecated #signature;)
}

fn definition(block: &Block, message: &Message) -> TokenStream {
    let root = &block.root;
    let conditions = conditions(block, message);
    let allow_deprecated = allow_deprecated(message);
    let signature = signature(block, message);
    let name = &message.name;
    let fields: Vec<_> = message.fields().map(|field| &field.name).collect();
    let fields = (!fields.is_empty()).then(|| quote_spanned!(message.place()=> { #(#fields),* }));
    quote_spanned! { message.place()=>
        #conditions
        #allow_deprecated
        #[inline]
        #signature {
            #root::Call::new(self, #name #fields)
        }
    }
}

fn signature(block: &Block, message: &Message) -> TokenStream {
    let Block { root, actor, .. } = block;
    let method = &message.method;
    let fields = message.fields().map(|field| {
        let (name, ty) = (&field.name, &field.ty);
        quote_spanned!(message.place()=> #name: #ty)
    });
    let message_type = message_type(block, message);
    let kind = match message.kind {
        Kind::Async => quote!(Async),
        Kind::Reply => quote!(Reply),
        Kind::Sync => quote!(Sync),
    };
    quote_spanned! { message.place()=>
        fn #method(&self, #(#fields),*)
            -> #root::Call<'_, #actor, #message_type, #root::marker::#kind>
    }
}
