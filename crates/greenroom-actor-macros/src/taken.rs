//! A test that the list of names that the references to actors have themselves is complete.

use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{ImplItem, ItemImpl, Type, Visibility};

use crate::message::TAKEN;

#[test]
fn every_method_of_the_references_is_taken() {
    let mut methods = Methods::default();
    for package in ["greenroom-actor", "greenroom-cluster"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{package}/src"));
        for source in rust_files(&sources) {
            let text = fs::read_to_string(&source).expect("a source can be read");
            methods.visit_file(&syn::parse_file(&text).expect("a source is Rust"));
        }
    }
    assert!(
        methods.0.iter().any(|name| name == "tell"),
        "no methods of `ActorRef` found"
    );
    let is_missing = |name: &&String| !TAKEN.contains(&name.as_str());
    let missing: Vec<_> = methods.0.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "add to TAKEN: {missing:?}");
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder of the sources is there");
    let paths = entries.map(|entry| entry.expect("an entry can be read").path());
    let files = paths.flat_map(|path| {
        if path.is_dir() {
            rust_files(&path)
        } else {
            vec![path]
        }
    });
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// A visitor that collects the public methods in inherent `impl` blocks of `ActorRef` and
/// `Remote`.
#[derive(Default)]
struct Methods(Vec<String>);

impl<'ast> Visit<'ast> for Methods {
    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        if block.trait_.is_none() && is_reference(&block.self_ty) {
            let methods = block.items.iter().filter_map(|item| match item {
                ImplItem::Fn(method) if matches!(method.vis, Visibility::Public(_)) => {
                    method.sig.receiver().map(|_| method.sig.ident.to_string())
                }
                _ => None,
            });
            self.0.extend(methods);
        }
        visit::visit_item_impl(self, block);
    }
}

fn is_reference(ty: &Type) -> bool {
    let Type::Path(node) = ty else {
        return false;
    };
    let last = node.path.segments.last();
    last.is_some_and(|segment| segment.ident == "ActorRef" || segment.ident == "Remote")
}
