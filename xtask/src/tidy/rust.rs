//! Rust source as tokens. A syntax tree would stop at macros, and `proptest!` holds functions too.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, Ident, Spacing, TokenStream, TokenTree};

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: String,
    /// The line of its `fn`.
    pub(super) line: usize,
    /// From there to the line of the closing brace.
    pub(super) lines: usize,
}

/// Every function of `source`, nested ones and those inside of macros included.
pub(super) fn functions(source: &TokenStream) -> Vec<Function> {
    let mut found = Vec::new();
    for_each_level(source, &mut |tokens| {
        for (position, token) in tokens.iter().enumerate() {
            if is_ident(Some(token), "fn")
                && let Some(TokenTree::Ident(name)) = tokens.get(position + 1)
                && let Some(body) = body_after(&tokens[position..])
            {
                let line = token.span().start().line;
                found.push(Function {
                    name: name.to_string(),
                    line,
                    lines: body.span_close().end().line - line + 1,
                });
            }
        }
    });
    found
}

/// The names with which paths and imports begin: crates, and also modules and types.
pub(super) fn path_roots(source: &TokenStream) -> BTreeSet<String> {
    let mut roots = BTreeSet::new();
    for_each_level(source, &mut |tokens| {
        for (position, token) in tokens.iter().enumerate() {
            if let TokenTree::Ident(name) = token
                && is_root(&tokens[..position], &tokens[position + 1..])
            {
                roots.insert(bare(name));
            }
        }
    });
    roots
}

/// True if the file begins with an attribute such as `#![doc = "..."]` (which `//! ...` becomes) or
/// `#![forbid(unsafe_code)]` that has all of these words.
pub(super) fn has_inner_attribute(source: &TokenStream, words: &[&str]) -> bool {
    let tokens: Vec<_> = source.clone().into_iter().collect();
    tokens.windows(3).any(|window| match window {
        [hash, bang, TokenTree::Group(content)] => {
            is_punct(Some(hash), '#') && is_punct(Some(bang), '!') && mentions(content, words)
        }
        _ => false,
    })
}

/// Returns the lines of literals that have several of them.
pub(super) fn lines_of_literals(source: &TokenStream) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    for_each_level(source, &mut |tokens| {
        for token in tokens {
            if let TokenTree::Literal(literal) = token {
                let (begin, end) = (literal.span().start().line, literal.span().end().line);
                if begin < end {
                    lines.extend(begin..=end);
                }
            }
        }
    });
    lines
}

/// Shows `see` the tokens of each delimited group, the outermost level first.
fn for_each_level(source: &TokenStream, see: &mut impl FnMut(&[TokenTree])) {
    let tokens: Vec<_> = source.clone().into_iter().collect();
    see(&tokens);
    for token in &tokens {
        if let TokenTree::Group(group) = token {
            for_each_level(&group.stream(), see);
        }
    }
}

fn body_after(tokens: &[TokenTree]) -> Option<&Group> {
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return Some(group),
            TokenTree::Punct(punct) if punct.as_char() == ';' => return None,
            _ => {}
        }
    }
    None
}

fn is_root(before: &[TokenTree], after: &[TokenTree]) -> bool {
    let before = match before {
        [rest @ .., first, second] if is_punct(Some(first), ':') && is_punct(Some(second), ':') => {
            match rest.last() {
                // A global path such as `::tokio::spawn`, after a keyword or not.
                Some(TokenTree::Ident(name)) if *name != "use" && *name != "as" => return false,
                Some(TokenTree::Punct(punct)) if punct.as_char() == '>' => return false,
                _ => rest,
            }
        }
        _ => before,
    };
    let is_imported = is_ident(before.last(), "use") || is_ident(before.last(), "crate");
    is_imported || begins_path(after)
}

fn begins_path(after: &[TokenTree]) -> bool {
    match after {
        [TokenTree::Punct(first), second, ..] => {
            first.as_char() == ':'
                && first.spacing() == Spacing::Joint
                && is_punct(Some(second), ':')
        }
        _ => false,
    }
}

fn mentions(group: &Group, words: &[&str]) -> bool {
    let mut found = BTreeSet::new();
    for_each_level(&group.stream(), &mut |tokens| {
        for token in tokens {
            if let TokenTree::Ident(name) = token {
                found.insert(bare(name));
            }
        }
    });
    words.iter().all(|word| found.contains(*word))
}

fn is_ident(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if *ident == name)
}

fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// `r#type` names what `type` names.
fn bare(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#")
        .map_or_else(|| name.clone(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(source: &str) -> TokenStream {
        source.parse().expect("the test's source is Rust")
    }

    #[test]
    fn functions_are_found_in_impls_functions_and_macros() {
        let source = tokens(
            "trait T { fn declared(); }\nimpl T for U {\n fn outer() {\n  fn inner() {}\n }\n}\n\
             proptest! {\n #[test]\n fn in_macro(x in 0..9) {\n }\n}\ntype P = fn(u8) -> u8;",
        );
        let found: Vec<_> = functions(&source)
            .into_iter()
            .map(|function| (function.name, function.line, function.lines))
            .collect();
        let expected = [("inner", 4, 1), ("in_macro", 9, 2), ("outer", 3, 3)];
        let mut sorted = found;
        sorted.sort();
        let mut expected = expected.map(|(name, line, lines)| (name.to_owned(), line, lines));
        expected.sort();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn a_path_begins_with_its_root() {
        let source = tokens(
            "use one::two; pub use three; use ::four::five; extern crate six; \
             #[seven::main] fn f(bytes: eight::T) { let nine = 1; <T as ::ten::U>::eleven::f() }",
        );
        let roots = path_roots(&source);
        for crate_name in ["eight", "four", "one", "seven", "six", "ten", "three"] {
            assert!(
                roots.contains(crate_name),
                "{crate_name} is not in {roots:?}"
            );
        }
        for other in ["two", "five", "bytes", "nine", "main", "U", "eleven"] {
            assert!(!roots.contains(other), "{other} is in {roots:?}");
        }
    }

    #[test]
    fn inner_attributes_are_told_from_outer_ones() {
        let source = tokens("//! The crate.\n#![forbid(unsafe_code)]\n/// A function.\nfn f() {}");
        assert!(has_inner_attribute(&source, &["doc"]));
        assert!(has_inner_attribute(&source, &["forbid", "unsafe_code"]));
        assert!(!has_inner_attribute(&source, &["forbid", "missing_docs"]));
        let outer = tokens("/// A function.\nfn f() {}");
        assert!(!has_inner_attribute(&outer, &["doc"]));
    }
}
