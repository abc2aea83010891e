//! Generation of the handler of a message, which calls the method.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use super::{allow_deprecated, conditions, message_type};
use crate::argument::Argument;
use crate::block::Block;
use crate::message::{Kind, Message};

pub(super) fn one(block: &Block, message: &Message) -> TokenStream {
    let (root, actor) = (&block.root, &block.actor);
    let (generics, _, bounds) = block.methods.generics.split_for_impl();
    let conditions = conditions(block, message);
    let allow_deprecated = allow_deprecated(message);
    let message_type = message_type(block, message);
    let reply = &message.reply;
    let (handler, handle) = match message.kind {
        Kind::Async => (quote!(AsyncHandler), handle_async(block, message)),
        Kind::Reply => (quote!(ReplyHandler), handle_replying(block, message)),
        Kind::Sync => (quote!(Handler), handle_sync(block, message)),
    };
    quote_spanned! { message.place()=>
        #conditions
        #allow_deprecated
        #[automatically_derived]
        impl #generics #root::#handler<#message_type> for #actor #bounds {
            type Reply = #reply;

            #[inline]
            #handle
        }
    }
}

fn handle_sync(block: &Block, message: &Message) -> TokenStream {
    let (inputs, call) = (inputs(block, message), call(message));
    quote_spanned! { message.place()=>
        fn handle(&mut self, #inputs) -> Self::Reply {
            #call
        }
    }
}

/// Returns the method's own future: an `async fn` around it would cost its size again.
fn handle_async(block: &Block, message: &Message) -> TokenStream {
    let (inputs, call) = (inputs(block, message), call(message));
    quote_spanned! { message.place()=>
        fn handle(&mut self, #inputs)
            -> impl ::core::future::Future<Output = Self::Reply> + ::core::marker::Send
        {
            #call
        }
    }
}

fn handle_replying(block: &Block, message: &Message) -> TokenStream {
    let (inputs, call) = (inputs(block, message), call(message));
    quote_spanned! { message.place()=>
        fn handle(&mut self, #inputs) {
            #call;
        }
    }
}

fn inputs(block: &Block, message: &Message) -> TokenStream {
    let root = &block.root;
    let message_type = message_type(block, message);
    let has_fields = message.fields().next().is_some();
    let passed_message = has_fields.then(|| quote!(message)).unwrap_or(quote!(_));
    let is_context = |argument: &Argument| matches!(argument, Argument::Context);
    let has_context = message.arguments.iter().any(is_context);
    let context = has_context.then(|| quote!(context)).unwrap_or(quote!(_));
    let reply = (message.kind == Kind::Reply)
        .then(|| quote_spanned!(message.place()=> reply: #root::ReplyTo<Self::Reply>,));
    quote_spanned! { message.place()=>
        #passed_message: #message_type,
        #reply
        #context: &mut #root::Context<Self>
    }
}

fn call(message: &Message) -> TokenStream {
    let method = &message.method;
    let arguments = message.arguments.iter().map(|argument| match argument {
        Argument::Context => quote!(context),
        Argument::Field(field) => {
            let name = &field.name;
            quote!(message.#name)
        }
        Argument::Reply(_) => quote!(reply),
    });
    quote_spanned!(message.place()=> Self::#method(self, #(#arguments),*))
}
